package fold

import "testing"

func TestWidths(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		cut   string // to 6 columns
		start string // likewise, without the beginning
	}{
		{"", 0, "", ""}, {"abcdef", 6, "abcdef", "abcdef"}, {"abcdefg", 7, "abcde…", "…cdefg"},
		{"你好你", 6, "你好你", "你好你"}, {"你好你好", 8, "你好…", "…你好"}, {"你好abcde", 9, "你好a…", "…abcde"},
		{"می\u200cروم", 5, "می\u200cروم", "می\u200cروم"},
	} {
		if got := Width(c.text); got != c.width {
			t.Errorf("%q has %d columns, want %d", c.text, got, c.width)
		}
		if got := Cut(c.text, 6); got != c.cut {
			t.Errorf("%q was cut to %q, want %q", c.text, got, c.cut)
		}
		if got := CutStart(c.text, 6); got != c.start {
			t.Errorf("%q was cut to %q, want %q", c.text, got, c.start)
		}
	}
	if got := CutStart("ab", 0); got != "…" {
		t.Errorf("%q", got)
	}
	if got := Pad("你", 4) + "|" + PadLeft("你", 4) + "|" + Pad("long", 2); got != "你  |  你|long" {
		t.Errorf("%q", got)
	}
}
