package fold

import "testing"

func TestWidths(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		cut   string // to 6 columns
	}{
		{"", 0, ""}, {"abcdef", 6, "abcdef"}, {"abcdefg", 7, "abcde…"}, {"你好你", 6, "你好你"}, {"你好你好", 8, "你好…"},
		{"می\u200cروم", 5, "می\u200cروم"},
	} {
		if got := Width(c.text); got != c.width {
			t.Errorf("%q has %d columns, want %d", c.text, got, c.width)
		}
		if got := Cut(c.text, 6); got != c.cut {
			t.Errorf("%q was cut to %q, want %q", c.text, got, c.cut)
		}
	}
	if got := Pad("你", 4) + "|" + PadLeft("你", 4) + "|" + Pad("long", 2); got != "你  |  你|long" {
		t.Errorf("%q", got)
	}
}
