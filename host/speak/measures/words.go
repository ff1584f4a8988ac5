package measures

import (
	"strings"
	"unicode"
)

// WordErrors is the word error rate of a transcript, against a text: the least number of words to insert, to delete
// and to replace, divided by the words of the text. In scripts without spaces, which is where most letters of the text
// are of Chinese, Japanese, Thai, Lao, Khmer or Burmese, it is the character error rate, of characters without spaces.
// Text is converted to lower case, and punctuation and symbols are left out by their Unicode category; a dash parts two
// words. It is not ok for a text without a word.
func WordErrors(text, transcript string) (rate float64, characters, ok bool) {
	characters = unspaced(text)
	want, got := units(text, characters), units(transcript, characters)
	if len(want) == 0 {
		return 0, characters, false
	}
	return float64(edits(want, got)) / float64(len(want)), characters, true
}

// unspaced reports whether most letters are of scripts that put no spaces between words.
func unspaced(text string) bool {
	letters, without := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
				unicode.Myanmar) {
				without++
			}
		}
	}
	return 2*without > letters
}

// units are the words of a text, or its characters.
func units(text string, characters bool) []string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Pd, r):
			return ' '
		case unicode.IsPunct(r), unicode.IsSymbol(r), characters && unicode.IsSpace(r):
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	if characters {
		return strings.Split(strings.ReplaceAll(text, " ", ""), "")
	}
	return strings.Fields(text)
}

// edits is the distance of Levenshtein.
func edits(want, got []string) int {
	row := make([]int, len(got)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		diagonal := row[0]
		row[0] = i + 1
		for j, g := range got {
			cost := diagonal
			if w != g {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(got)]
}
