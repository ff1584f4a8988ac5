package dataset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalize is all that the host does to a text of its own: the same letters get the same code points, and what no
// reader sees goes. How a text is spelled, which digits it has, and whether it has a ZWNJ are the business of
// whoever wrote it and of tokenizer.json. A text that is so already is returned as it is.
//
// White-space controls become spaces, the other control characters and byte order marks go; then canonical composition (NFC).
func normalize(text string) string {
	if strings.ContainsFunc(text, invisible) {
		text = strings.Map(func(r rune) rune {
			switch {
			case !invisible(r):
				return r
			case unicode.IsSpace(r):
				return ' ' // it may stand between two words
			}
			return -1
		}, text)
	}
	return strings.TrimSpace(norm.NFC.String(text))
}

// invisible matches control characters (category Cc) and the byte order mark. Format characters such as ZWNJ and ZWJ
// decide how words are read, and stay.
func invisible(r rune) bool { return unicode.IsControl(r) || r == '\uFEFF' }

// instead returns a character of the vocabulary that stands for the same letter or digit as an unknown one, or 0. It only
// helps to say what is wrong with a text: the host does not replace it, because a tokenizer may tell the two apart.
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

// alike lists code points that keyboards of Arabic script mix up: Arabic and Persian forms of kaf and yeh, and the digits
// (The Unicode Standard, chapter 9.2, "Arabic").
var alike = []string{
	"\u06CC\u064A\u0649", "\u06A9\u0643",
	"0\u06F0\u0660", "1\u06F1\u0661", "2\u06F2\u0662", "3\u06F3\u0663", "4\u06F4\u0664",
	"5\u06F5\u0665", "6\u06F6\u0666", "7\u06F7\u0667", "8\u06F8\u0668", "9\u06F9\u0669",
}
