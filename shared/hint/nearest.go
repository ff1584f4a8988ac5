package hint

import (
	"slices"
	"strings"
	"unicode"
)

// DidYouMean returns a hint that names the known words nearest to a mistyped one, or "" when none is near: "did you
// mean --lr?". Case, dashes, underscores and dots do not count. A word of a longer name is near, too: --steps is near
// to --max-steps. So is the beginning of a name: specaug is near to specaugment.
func DidYouMean(typed string, known []string) string {
	near := nearest(typed, known)
	switch n := len(near); n {
	case 0:
		return ""
	case 1:
		return "did you mean " + near[0] + "?"
	default:
		return "did you mean " + strings.Join(near[:n-1], ", ") + " or " + near[n-1] + "?"
	}
}

// nearest returns the known words with the smallest distance, in their order, or else those that have the typed one as
// a word or begin with it, or else those that have it but for one slip.
func nearest(typed string, known []string) []string {
	letters := fold(typed)
	smallest := (len(letters) + 5) / 5 // a slip in four letters, two in nine
	var near []string
	for _, word := range known {
		switch d := Distance(letters, fold(word)); {
		case d < smallest || d == smallest && len(near) == 0:
			smallest, near = d, []string{word}
		case d == smallest:
			near = append(near, word)
		}
	}
	if len(near) > 0 || len(letters) < 3 {
		return near
	}
	for _, word := range known {
		if strings.HasPrefix(string(fold(word)), string(letters)) || hasPart(word, letters, 0) {
			near = append(near, word)
		}
	}
	if len(near) > 0 || len(letters) < 4 {
		return near
	}
	return slices.DeleteFunc(slices.Clone(known), func(word string) bool { return !hasPart(word, letters, 1) })
}

// hasPart reports whether a word has the letters between its separators, but for so many slips.
func hasPart(word string, letters []rune, slips int) bool {
	parts := strings.FieldsFunc(strings.ToLower(word), separates)
	return slices.ContainsFunc(parts, func(part string) bool { return Distance(letters, []rune(part)) <= slips })
}

func separates(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// fold leaves the letters and digits of a word, in lower case.
func fold(word string) []rune {
	return slices.DeleteFunc([]rune(strings.ToLower(word)), separates)
}

// Distance counts the letters to insert, delete, replace or swap with the next one that make b of a.
func Distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
