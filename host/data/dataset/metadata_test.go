package dataset

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// listed is the expected entry for a line of metadata.csv.
func listed(line int, id, text, reason string) entry {
	e := entry{line: line, id: id, text: text, reason: reason}
	if id != "" {
		e.audio, e.any, e.speaker = "wavs/"+id+".wav", true, speakerOf(id)
	}
	return e
}

func TestParseList(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       []entry
		err        string
	}{
		{"two columns", "1|one\n2|two\n", []entry{listed(1, "1", "one", ""), listed(2, "2", "two", "")}, ""},
		{"the last column counts", "1|raw 1|raw one\n", []entry{listed(1, "1", "raw one", "")}, ""},
		{
			"the last that is not empty", "1|raw|\n2|raw| |\n",
			[]entry{listed(1, "1", "raw", ""), listed(2, "2", "raw", "")}, "",
		},
		{"quotes mean nothing", "1|\"a\n", []entry{listed(1, "1", "\"a", "")}, ""},
		{
			"mark, CRLF, no last newline", "\uFEFF1|one\r\n2|two",
			[]entry{listed(1, "1", "one", ""), listed(2, "2", "two", "")}, "",
		},
		{
			"empty lines keep the numbering", "\n1|one\n \n2|two\n",
			[]entry{listed(2, "1", "one", ""), listed(4, "2", "two", "")}, "",
		},
		{"trimmed", " A/1 | one \n", []entry{listed(1, "A/1", "one", "")}, ""},
		{
			"composed, without controls", "1|e\u0301\x07 a\tb\u200c\uFEFF\n",
			[]entry{listed(1, "1", "\u00e9 a b\u200c", "")}, "",
		},
		{"only controls", "1|\x01\x02\n", []entry{listed(1, "1", "", "the text is empty")}, ""},
		{"nothing", "", nil, ""},
		{"no column", "just words\n", []entry{listed(1, "", "", "no '|' between id and text")}, ""},
		{"no text", "1||\n", []entry{listed(1, "1", "", "the text is empty")}, ""},
		{"no id", "|text\n", []entry{listed(1, "", "text", "the id is empty")}, ""},
		{"latin-1", "1|caf\xe9\n2|ok\n", []entry{
			listed(1, "", "", "the line is not UTF-8"), listed(2, "2", "ok", ""),
		}, ""},
		{"duplicate", "1|a\n2|b\n1|c\n", nil, `list:3: id "1" is already in line 1`},
		{"duplicate of a bad line", "1|\n1|c\n", nil, `list:2: id "1" is already in line 1`},
		{"upwards", "../../etc/passwd|x\n", nil, `list:1: id "../../etc/passwd" does not name a file under wavs`},
		{"upwards inside", "a/../b|x\n", nil, "does not name a file"},
		{"absolute", "/etc/passwd|x\n", nil, "does not name a file"},
		{"dot", ".|x\n", nil, "does not name a file"},
		{"empty element", "a//b|x\n", nil, "does not name a file"},
		{"backslash", "a\\b|x\n", nil, "backslash"},
		{"zero byte", "a\x00b|x\n", nil, "control character"},
		{"long line", "1|a\n2|" + strings.Repeat("x", maxLine), nil, "list:2: the line is longer than 1024 KiB"},
		{"many", strings.Repeat("1|x\n", 9), nil, "and 3 more such lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseList("list", strings.NewReader(c.data), lastColumn)
			contains(t, err, c.err)
			if c.err == "" && !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSpeakerOf(t *testing.T) {
	for id, want := range map[string]string{"LJ001-0001": "", "A/0001": "A", "p225/chapter/0001": "p225"} {
		if got := speakerOf(id); got != want {
			t.Errorf("speakerOf(%q) = %q, want %q", id, got, want)
		}
	}
}

// For any bytes, an accepted list has unique ids that stay below wavs.
func FuzzParseList(f *testing.F) {
	for _, s := range []string{
		"1|one\n", "\uFEFFA/1|a|b\r\n\r\n|x\n", "../x|y\n", "1|\n1|2\n", "a\xff|b", "a|b\x00c|",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseList("list", bytes.NewReader(data), lastColumn)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		line := 0
		for _, e := range entries {
			if e.line <= line {
				t.Errorf("line %d after line %d", e.line, line)
			}
			line = e.line
			if e.reason == "" && (e.id == "" || e.text == "") {
				t.Errorf("%+v has no reason", e)
			}
			if e.id == "" {
				continue
			}
			if seen[e.id] || strings.HasPrefix(e.id, "/") || strings.Contains("/"+e.id+"/", "/../") {
				t.Errorf("id %q", e.id)
			}
			seen[e.id] = true
		}
	})
}

// TestIDNamesTheFolder: a refused id says below which folder it should be.
func TestIDNamesTheFolder(t *testing.T) {
	for base, want := range map[string]string{"wavs/": "wavs", "clips/": "clips", "": "the folder of the data set"} {
		err := checkID(base, "../a")
		contains(t, err, `id "../a" does not name a file under `+want)
		if advice := hint.Of(err); !strings.Contains(advice, "a path below "+want+",") {
			t.Errorf("base %q: %s", base, advice)
		}
	}
}
