package texts

import (
	"strings"
	"unicode"
)

// The two characters that only say how their neighbours join.
const (
	nonJoiner = '\u200C'
	joiner    = '\u200D'
)

// Hidden reports whether a character cannot be seen and does not change how a text is read: format characters such as
// bidirectional controls, the zero-width space and the soft hyphen, and variation selectors. Joiners and marks such as
// that of a number are not hidden.
func Hidden(r rune) bool {
	switch {
	case r < 0xAD, r == nonJoiner, r == joiner, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case r == '\u034F', r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// removeInvisible removes hidden characters, and joiners that have no effect.
func removeInvisible(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == nonJoiner || r == joiner || Hidden(r) }) {
		return text
	}
	seen := make([]rune, 0, len(text))
	for _, r := range text {
		if !Hidden(r) {
			seen = append(seen, r)
		}
	}
	out := seen[:0:0]
	for i, r := range seen {
		if r == nonJoiner && !separates(out, seen, i+1) || r == joiner && !connects(out) {
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

// alphabets are scripts whose letters never join, or join whatever is between them.
var alphabets = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Hebrew, unicode.Armenian, unicode.Georgian,
}

// separates reports whether a non-joiner between what is before it and what follows from next on has an effect: it
// stands between two letters that would join.
func separates(before, all []rune, next int) bool {
	at := last(before)
	if at < 0 || unicode.In(before[at], alphabets...) || !joins(all, next) {
		return false
	}
	return !unicode.Is(unicode.Arabic, before[at]) || joinsLeft(before[at])
}

// connects reports whether a joiner has an effect after these characters. Emoji have it between them.
func connects(before []rune) bool {
	if len(before) == 0 || before[len(before)-1] == joiner {
		return false
	}
	r := before[len(before)-1]
	return !unicode.IsSpace(r) && !unicode.In(r, alphabets...)
}

// last returns the place of the last letter, if only marks follow it; -1 if there is none.
func last(runes []rune) int {
	for i := len(runes) - 1; i >= 0; i-- {
		switch {
		case unicode.IsLetter(runes[i]):
			return i
		case !unicode.IsMark(runes[i]):
			return -1
		}
	}
	return -1
}

// joins reports whether the character at a place is a letter that may join with the one before it. Marks and hidden
// characters before it do not matter.
func joins(runes []rune, at int) bool {
	for ; at < len(runes); at++ {
		switch r := runes[at]; {
		case unicode.IsMark(r), Hidden(r):
		case r == '\u0621', r == '\u0674': // hamza never joins
			return false
		default:
			return unicode.IsLetter(r)
		}
	}
	return false
}

// joinsLeft reports whether a letter of Arabic script joins with one after it. Those of the joining types R and U of
// Unicode's ArabicShaping.txt do not.
func joinsLeft(r rune) bool {
	switch {
	case r == 0x0621, r >= 0x0622 && r <= 0x0625, r == 0x0627, r == 0x0629, r >= 0x062F && r <= 0x0632, r == 0x0648,
		r >= 0x0671 && r <= 0x0677, r >= 0x0688 && r <= 0x0699, r == 0x06C0, r >= 0x06C3 && r <= 0x06CB, r == 0x06CD,
		r == 0x06CF, r == 0x06D2, r == 0x06D3, r == 0x06D5, r == 0x06EE, r == 0x06EF:
		return false
	}
	return true
}
