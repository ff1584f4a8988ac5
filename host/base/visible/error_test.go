package visible

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

type list []string

func (l list) Error() string   { return strings.Join(l, "\n") }
func (l list) Lines() []string { return l }

// TestError: only the program breaks lines. What is foreign in a message stays in its line, and no line begins as a
// message.
func TestError(t *testing.T) {
	const evil = "a\nerror: forged\x1b[2J"
	const shown = `a\nerror: forged\x1b[2J`
	file := &fs.PathError{Op: "open", Path: evil, Err: fs.ErrNotExist}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{errors.New(evil), shown},
		{file, "open " + shown + ": file does not exist"},
		{fmt.Errorf("%s: %w", evil, file), shown + ": open " + shown + ": file does not exist"},
		{
			errors.Join(errors.New("one"), errors.New("error: two"), file),
			"one\n  error: two\n  open " + shown + ": file does not exist",
		},
		{
			fmt.Errorf("%s: %w after", evil, errors.Join(errors.New("one"), errors.New("two"))),
			shown + ": one\n  two after",
		},
		{fmt.Errorf("%w: %w", errors.New(evil), list{"first", evil}), shown + ": first\n  " + shown},
		{
			fmt.Errorf("%w after", WithLines(errors.New(evil), "  "+evil, "row")),
			shown + ":\n  " + shown + "\n  row after",
		},
		{list{"head " + evil, "  item " + evil}, "head " + shown + "\n  item " + shown},
		{fmt.Errorf("file does not exist: %w", file), "file does not exist: open " + shown + ": file does not exist"},
		{
			fmt.Errorf("other text than %s: %w", evil, errors.Join(errors.New(evil))),
			"other text than " + shown + ": " + shown,
		},
	} {
		if got := strings.Join(Error(c.err), "\n"); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.err, got, c.want)
		}
	}
}

// TestInvisible: what cannot be seen is shown, and what scripts need stays.
func TestInvisible(t *testing.T) {
	for in, want := range map[string]string{
		"zero\u200bwidth\ufeff":      `zero\u200bwidth\ufeff`,
		"soft\u00adhyphen":           `soft\u00adhyphen`,
		"tag\U000e0041":              `tag\U000e0041`,
		"latin\u200cjoiner":          `latin\u200cjoiner`,
		"\u200calone":                `\u200calone`,
		"می\u200cروم":                "می\u200cروم",
		"क्\u200dष":                  "क्\u200dष",
		"👩\u200d💻":                   "👩\u200d💻",
		"שלום עולם":                  "שלום עולם",
		"mark\u200f\u2066iso\u2069":  `mark\u200f\u2066iso\u2069`,
		"\u0600\u06dd":               "\u0600\u06dd",
		"a\ufffdb":                   "a\ufffdb",
		"a\u3164\u115f\u1160\uffa0b": `a\u3164\u115f\u1160\uffa0b`,
		"a\u034fb\u17b4\u2065":       `a\u034fb\u17b4\u2065`,
		"a\ufe0f\U000e0100":          `a\ufe0f\U000e0100`,
		"😀\ufe0f\ufe0e\U000e0123":    "😀\ufe0f" + `\ufe0e\U000e0123`,
		"葛\U000e0100 ❤\ufe0f\u200d🔥": "葛\U000e0100 ❤\ufe0f\u200d🔥",
		"1\ufe0f\u20e3 ᠠ\u180b":      "1\ufe0f\u20e3 ᠠ\u180b",
		"\u00a0\u3000한국어":            "\u00a0\u3000한국어",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

// TestWriter: lines stay lines, and controls do not.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	if n, err := fmt.Fprint(w, "one\ntwo\x1b[31m\r\n"); n != 14 || err != nil ||
		out.String() != "one\ntwo\\x1b[31m\\x0d\n" {
		t.Errorf("%d, %v, %q", n, err, out.String())
	}
	out.Reset()
	for _, b := range []byte("می\u200cروم \u202e\n") {
		if _, err := w.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "می\u200cروم \\u202e\n"; got != want {
		t.Errorf("in pieces: %+q, want %+q", got, want)
	}
	if Raw(w) != &out || Raw(&out) != &out {
		t.Error("the writer below is another one")
	}
	out.Reset()
	Fprintf(&out, "%s and %v: %d\n", "a\nb", errors.New("c\nd"), 3)
	if got := out.String(); got != `a\nb and c\nd: 3`+"\n" {
		t.Errorf("%q", got)
	}
}

type name string

func (n name) String() string { return string(n) }

// TestArgs: whatever prints foreign text prints it as Text, and numbers and the verbs of others stay.
func TestArgs(t *testing.T) {
	const evil = "a\n\x1b[2J"
	var none *fs.PathError
	for _, c := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%s %v", []any{name(evil), name(evil)}, `a\n\x1b[2J a\n\x1b[2J`},
		{"%v %v", []any{[]string{evil}, struct{ name string }{evil}}, `[a\n\x1b[2J] {a\n\x1b[2J}`},
		{"%q %q", []any{evil, "\u200b\ufe0f"}, `"a\n\x1b[2J" "\u200b\ufe0f"`},
		{"%v %d %s", []any{time.Second, time.Second, time.Minute}, "1s 1000000000 1m0s"},
		{"%*d|%-9s|%6.2f|%x|%t", []any{4, 7, evil[:2], 1.5, 255, true}, `   7|a\n      |  1.50|ff|true`},
		{"%v %v", []any{nil, none}, "<nil> <nil>"},
	} {
		var out bytes.Buffer
		if Fprintf(&out, c.format, c.args...); out.String() != c.want {
			t.Errorf("%q: %q, want %q", c.format, out.String(), c.want)
		}
	}
}

// TestJSON: the values are the same, and nothing in the text is invisible.
func TestJSON(t *testing.T) {
	const value = "a\x1b\x7f\u009b31m\u202e\u200b\U000e0041 می\u200cروم"
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	got := JSON(text)
	var back string
	if err := json.Unmarshal(got, &back); err != nil || back != value {
		t.Errorf("%q, %v", back, err)
	}
	if Text(string(got)) != string(got) || !strings.Contains(string(got), "می\u200cروم") {
		t.Errorf("%+q", got)
	}
}
