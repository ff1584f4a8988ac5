package visible

import "testing"

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü \t می\u200cروم": "plain ü \t می\u200cروم",
		"\x1b[2J\x07":            `\x1b[2J\x07`,
		"a\r\nb\x7f":             `a\x0d\nb\x7f`,
		"\u009b31m":              `\u009b31m`,
		"abc\u202edcba":          `abc\u202edcba`,
		"x\u2028y":               `x\u2028y`,
		"\xff\x9b":               `\xff\x9b`,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc…"},
		{"abüdefg", 6, "ab…"}, // not half of a character
		{"a\x1b[2Jefg", 9, `a\x1b[…`},
	} {
		if got := Short(tt.in, tt.limit); got != tt.want || len(got) > tt.limit {
			t.Errorf("Short(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

// TestClauses: a command that does not fit is left out, not cut.
func TestClauses(t *testing.T) {
	const reason = "AAC is not read; convert with: ffmpeg -i a.wav -c:a flac a.flac"
	for _, tt := range []struct {
		limit int
		want  string
	}{
		{len(reason), reason},
		{len(reason) - 1, "AAC is not read; …"},
		{20, "AAC is not read; …"},
		{18, "AAC is not read…"},
	} {
		if got := Clauses(reason, tt.limit); got != tt.want || len(got) > tt.limit {
			t.Errorf("limit %d: %q, want %q", tt.limit, got, tt.want)
		}
	}
}

func TestLines(t *testing.T) {
	const want = `failed` + "\n  loud: error: all is lost\n  loud: \\x1b[31mhint: rm -r /"
	if got := Lines("loud", "failed\r\nerror: all is lost\n\x1b[31mhint: rm -r /\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
