package dataset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/xtts-host/xtts-host/host/settings/texts"
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
// in messages: the host does not replace the character unless Config.Normalize asks for it, because a tokenizer may
// distinguish the two.
func (t *Tokenizer) instead(unknown rune) rune {
	for _, r := range texts.Alike(unknown) {
		if _, ok := t.vocab[string(r)]; ok {
			return r
		}
	}
	return 0
}
