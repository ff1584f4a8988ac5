package dataset

import "testing"

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"composed", "Zoe\u0308", "Zo\u00EB"},
		{"Persian alef with madda", "\u0627\u0653ب", "\u0622ب"},
		{"ZWNJ stays", "می\u200Cروم", "می\u200Cروم"},
		{"Arabic letters and digits stay", "علي \u0643 ١٢ ۱۲", "علي \u0643 ١٢ ۱۲"},
		{"compatibility forms stay", "ﻻ ﬁ ½", "ﻻ ﬁ ½"},
		{"byte order marks go", "\uFEFFa\uFEFFb", "ab"},
		{"controls go", "a\x00\x1Bb\u0080c\x7F", "abc"},
		{"a removed control lets letters compose", "e\x01\u0301", "\u00E9"},
		{"white-space controls separate words", "a\tb\nc\u0085d\r\n", "a b c d"},
		{"white space at both ends is removed", " \u00A0 a b ", "a b"},
		{"nothing left", "\x00 \uFEFF", ""},
	} {
		got := normalize(c.text)
		if got != c.want {
			t.Errorf("%s: got %+q, want %+q", c.name, got, c.want)
		}
		if again := normalize(got); again != got {
			t.Errorf("%s: a second time gives %+q", c.name, again)
		}
	}
}

func TestInstead(t *testing.T) {
	tok, err := LoadTokenizer("testdata/persian.json")
	if err != nil {
		t.Fatal(err)
	}
	for unknown, want := range map[rune]rune{
		'\u064A': '\u06CC', '\u0649': '\u06CC', '\u0643': '\u06A9', '\u06F1': 0, 'é': 0,
	} {
		if got := tok.instead(unknown); got != want {
			t.Errorf("instead of %#U: %#U, want %#U", unknown, got, want)
		}
	}
}
