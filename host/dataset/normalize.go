package dataset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalize is the host's own normalization of a text: equal letters get equal code points, and invisible characters
// are removed. It does not change spelling, digits or ZWNJ; the author of the text and tokenizer.json decide these. It
// returns an already normalized text unchanged.
//
// White-space controls become spaces. Other control characters and byte order marks are removed. Canonical composition
// (NFC) follows.
func normalize(text string) string {
	if strings.ContainsFunc(text, invisible) {
		text = strings.Map(func(r rune) rune {
			switch {
			case !invisible(r):
				return r
			case unicode.IsSpace(r):
				return ' ' // it may be between two words
			}
			return -1
		}, text)
	}
	return strings.TrimSpace(norm.NFC.String(text))
}

// invisible matches control characters (category Cc) and the byte order mark. Format characters such as ZWNJ and ZWJ
// change how words are read, so they stay.
func invisible(r rune) bool { return unicode.IsControl(r) || r == '\uFEFF' }

// instead returns a character of the vocabulary for the same letter or digit as an unknown one, or 0. It is only used
// in messages: the host does not replace the character, because a tokenizer may distinguish the two.
func (t *Tokenizer) instead(unknown rune) rune {
	for _, group := range alike {
		if !strings.ContainsRune(group, unknown) {
			continue
		}
		for _, r := range group {
			if _, ok := t.vocab[string(r)]; ok {
				return r
			}
		}
	}
	return 0
}

// alike lists code points that keyboards for Arabic script confuse: Arabic and Persian forms of kaf and yeh, and the
// digits (The Unicode Standard, chapter 9.2, "Arabic").
var alike = []string{
	"\u06CC\u064A\u0649", "\u06A9\u0643",
	"0\u06F0\u0660", "1\u06F1\u0661", "2\u06F2\u0662", "3\u06F3\u0663", "4\u06F4\u0664",
	"5\u06F5\u0665", "6\u06F6\u0666", "7\u06F7\u0667", "8\u06F8\u0668", "9\u06F9\u0669",
}
