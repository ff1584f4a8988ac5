package dataset

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

// TestWideLists: a list in UTF-16 is refused, and the hint is a command that converts it.
func TestWideLists(t *testing.T) {
	const text = "1|First.\n2|Zweiter für 'zwei'.\n"
	for _, c := range []struct {
		encoding string
		mark     string
		order    binary.AppendByteOrder
	}{
		{"UTF-16", "\uFEFF", binary.LittleEndian}, {"UTF-16", "\uFEFF", binary.BigEndian},
		{"UTF-16LE", "", binary.LittleEndian}, {"UTF-16BE", "", binary.BigEndian},
	} {
		var wide []byte
		for _, unit := range utf16.Encode([]rune(c.mark + text)) {
			wide = c.order.AppendUint16(wide, unit)
		}
		dir := filepath.Join(t.TempDir(), "it's a list")
		list := filepath.Join(dir, "metadata.csv")
		write(t, list, wide)
		_, err := Open(t.Context(), Config{Dir: dir, SampleRate: 8000})
		if want := "data set " + dir + ": metadata.csv: the list is in " + c.encoding + ", not in UTF-8"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
			continue
		}
		command := strings.TrimPrefix(hint.Of(err), "convert it: ")
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if got, err := os.ReadFile(list); string(got) != text {
			t.Errorf("%s made %q (%v)", command, got, err)
		}
	}
	for _, narrow := range []string{"", "1|a\n", "1|\x00\n", "\uFEFF1|a\n", "1|\u4e00\u4e8c\n"} {
		if got := wideEncoding([]byte(narrow)); got != "" {
			t.Errorf("%q is taken for %s", narrow, got)
		}
	}
}
