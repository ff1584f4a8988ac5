package plain

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/xtts-host/xtts-host/shared/hint"
)

const text = "1|First.\n2|Zweiter für 'zwei'.\n"

// encoded is the text in an encoding whose characters have that many bytes.
func encoded(text string, order binary.AppendByteOrder, bytes int) (wide []byte) {
	if bytes == 4 {
		for _, r := range text {
			wide = order.AppendUint32(wide, uint32(r))
		}
		return wide
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		wide = order.AppendUint16(wide, unit)
	}
	return wide
}

// TestCheck: text in another encoding is refused, and the hint is a command that converts it.
func TestCheck(t *testing.T) {
	little, big := binary.LittleEndian, binary.BigEndian
	for _, c := range []struct {
		text []byte
		want string
	}{
		{encoded("\uFEFF"+text, little, 2), "it is in UTF-16, not in UTF-8"},
		{encoded("\uFEFF"+text, big, 2), "it is in UTF-16, not in UTF-8"},
		{encoded(text, little, 2), "it is in UTF-16LE, not in UTF-8"},
		{encoded(text, big, 2), "it is in UTF-16BE, not in UTF-8"},
		{encoded("\uFEFF"+text, little, 4), "it is in UTF-32, not in UTF-8"},
		{encoded("\uFEFF"+text, big, 4), "it is in UTF-32, not in UTF-8"},
		{encoded(text, little, 4), "it is in UTF-32LE, not in UTF-8"},
		{encoded(text, big, 4), "it is in UTF-32BE, not in UTF-8"},
		{[]byte(strings.ReplaceAll(text, "ü", "\xfc")), "it is not in UTF-8: byte 21 (0xfc) in line 2"},
	} {
		list := filepath.Join(t.TempDir(), "it's a \"list\"", "list.csv")
		if err := os.Mkdir(filepath.Dir(list), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(list, c.text, 0o666); err != nil {
			t.Fatal(err)
		}
		err := Check(list, c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
			continue
		}
		_, command, _ := strings.Cut(hint.Of(err), ": ")
		command, _, _ = strings.Cut(command, " (iconv -l")
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if got, err := os.ReadFile(list); string(Trim(got)) != text {
			t.Errorf("%s made %q (%v)", command, got, err)
		}
		err = Check("", c.text)
		_, command, _ = strings.Cut(hint.Of(err), ": ")
		pipe := exec.Command("sh", "-c", strings.TrimSuffix(command, " (iconv -l lists other encodings)"))
		pipe.Stdin = strings.NewReader(string(c.text))
		if got, err := pipe.Output(); string(Trim(got)) != text {
			t.Errorf("%s made %q (%v)", command, got, err)
		}
	}
}

func TestPlainText(t *testing.T) {
	for _, s := range []string{
		"", "1", "1|a\n", "1|\x00\n", "\x00\x00\x00\x00", "\uFEFF1|a\n", "1|\u4e00\u4e8c\n", "abc\x00defghijk",
	} {
		if err := Check("list.csv", []byte(s)); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	if got := string(Trim([]byte("\uFEFFa\uFEFF"))); got != "a\uFEFF" {
		t.Errorf("%q", got)
	}
}
