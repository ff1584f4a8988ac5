package layout

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A text and its normalized form share most pairs of letters (a mean of sure or more over the lines); a text and its
// translation or its phonemes do not (apart or less). Between the two, either is possible.
const (
	sure  = 0.7
	apart = 0.5
)

// letters is a text as far as its two forms agree: letters and digits without case, marks, punctuation and spaces.
func letters(text string) []rune {
	var out []rune
	for _, r := range norm.NFKD.String(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out
}

// alike returns Dice's coefficient of the pairs of neighbouring letters of two texts: 1 for equal ones, 0 without a
// common pair (L. R. Dice, Measures of the Amount of Ecologic Association Between Species, 1945).
func alike(a, b string) float64 {
	if a == b {
		return 1
	}
	x, y := letters(a), letters(b)
	if string(x) == string(y) {
		return 1
	}
	pairs, n := map[[2]rune]int{}, 0
	for i := range len(x) - 1 {
		pairs[[2]rune{x[i], x[i+1]}]++
	}
	for i := range len(y) - 1 {
		if p := [2]rune{y[i], y[i+1]}; pairs[p] > 0 {
			pairs[p]--
			n++
		}
	}
	return 2 * float64(n) / float64(max(1, len(x)+len(y)-2))
}

// scripts are the writing systems that texts are told apart by.
var scripts = []*unicode.RangeTable{
	unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Hangul, unicode.Han,
	unicode.Hiragana, unicode.Katakana, unicode.Devanagari, unicode.Thai, unicode.Bengali, unicode.Tamil,
	unicode.Telugu, unicode.Georgian, unicode.Armenian, unicode.Ethiopic,
}

// script returns which of scripts most letters of the texts are in, -1 for none.
func script(texts []string) int {
	counts := make([]int, len(scripts))
	best := -1
	for _, r := range strings.Join(texts, " ") {
		if !unicode.IsLetter(r) {
			continue
		}
		for i, s := range scripts {
			if unicode.Is(s, r) {
				counts[i]++
				if best < 0 || counts[i] > counts[best] {
					best = i
				}
				break
			}
		}
	}
	return best
}
