package fold

import "strings"

// Width is the number of columns that a text takes on a terminal: a Chinese letter takes two.
func Width(text string) (columns int) {
	for _, r := range text {
		columns += widthOf(r)
	}
	return columns
}

// Pad appends spaces up to a number of columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// PadLeft puts spaces before a text, up to a number of columns.
func PadLeft(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-Width(text))) + text
}

// Cut shortens a text to a number of columns: an ellipsis is in the place of its end.
func Cut(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	used := 1
	for i, r := range text {
		if used += widthOf(r); used > columns {
			return text[:i] + "…"
		}
	}
	return text
}

// CutStart is Cut, and drops the beginning.
func CutStart(text string, columns int) string {
	left := Width(text)
	if left <= columns {
		return text
	}
	for i, r := range text {
		if left+1 <= columns {
			return "…" + text[i:]
		}
		left -= widthOf(r)
	}
	return "…"
}
