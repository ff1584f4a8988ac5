package layout

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The evidence of sentences among values that repeat, as when several voices read the same ones.
const (
	mostVoices    = 32  // lines of one value: descriptions of a style are on more
	sentenceWords = 4   // mean words of values that are no names
	phraseWords   = 2.5 // the same where there are at least manyPhrases
	manyPhrases   = 8
	markedWords   = 2 // the same where most values end as sentences do
	longWords     = 5 // above it, capitals are those of a language, not of names
)

// sentences reports whether values that repeat are sentences, not names: they have several words and ends of sentences.
func (c *column) sentences() bool {
	n := len(c.values)
	if n < 2 || c.full() > mostVoices*n {
		return false
	}
	words, marked, titled := 0.0, 0, 0
	for v := range c.values {
		words += countWords(v)
		if endsSentence(v) {
			marked++
		}
		if isTitled(v) {
			titled++
		}
	}
	words /= float64(n)
	switch {
	case 2*titled > n && words < longWords:
		return false
	case 2*marked > n && words >= markedWords && (n > 2 || words > markedWords):
		return true
	}
	return n > 2 && words >= sentenceWords || n >= manyPhrases && words >= phraseWords
}

// countWords counts words with letters and no digits. Where a script has no spaces, it takes the usual letters of a
// word.
func countWords(value string) (n float64) {
	for word := range strings.FieldsSeq(value) {
		letters, dense := 0, 0.0
		for _, r := range word {
			switch {
			case unicode.IsDigit(r):
				letters = -len(word)
			case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
				dense += 1.0 / 2
			case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
				dense += 1.0 / 4
			case unicode.IsLetter(r):
				letters++
			}
		}
		if dense > 0 {
			n += dense
		} else if letters > 0 {
			n++
		}
	}
	return n
}

func endsSentence(value string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(value, `"'”’»)`))
	return strings.ContainsRune(".?!…。？！।؟۔", last)
}

// particles are the words of names that have no capital.
var particles = setOf("de del la le du di da dos van von der den zu of the bin ibn al and")

// isTitled reports whether all words have a capital and small letters, as those of a person's name.
func isTitled(value string) bool {
	titles := 0
	for word := range strings.FieldsSeq(value) {
		first, size := utf8.DecodeRuneInString(word)
		switch {
		case strings.ContainsAny(word, ",?!;:"):
			return false
		case unicode.IsUpper(first) &&
			(len(word) == size || strings.ToUpper(word) != word || strings.HasSuffix(word, ".")):
			titles++
		case !particles[word] && !unicode.IsDigit(first):
			return false
		}
	}
	return titles > 0
}
