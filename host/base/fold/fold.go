// Package fold breaks lines that are longer than a terminal is wide, so that the columns of a table stay columns:
//
//	out := fold.NewWriter(os.Stdout, width)
//	fmt.Fprintln(out, "memory    6.35 MiB: weights 1.59 MiB, gradients 1.59 MiB, ...")
package fold

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Writer folds what is written to it, line by line: what does not end with a newline is not written.
type Writer struct {
	to    io.Writer
	width int
	rest  []byte // the beginning of a line
}

// NewWriter returns a writer for a number of columns.
func NewWriter(to io.Writer, width int) *Writer { return &Writer{to: to, width: width} }

func (w *Writer) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 {
		return len(text), nil
	}
	_, err := io.WriteString(w.to, Text(string(w.rest[:end]), w.width))
	w.rest = append([]byte{}, w.rest[end:]...)
	return len(text), err
}

// Text folds the lines of a text. Words that are wider than a line stay whole, as do paths that Keep was given, and
// lines that are copied into a shell: hints, and lines with " && " or with spaces in quotes, as a path may have them.
func Text(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "hint: ") && !strings.Contains(line, " && ") && !quotesSpaces(line) {
			lines[i] = fold(strings.TrimRight(line, " "), width)
		}
	}
	return strings.Join(lines, "\n")
}

// Prose is Text for the lines without columns: those of a table that is wider stay whole.
func Prose(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains(strings.TrimSpace(line), "  ") {
			lines[i] = Text(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

// quoted is text in single quotes as a shell takes it: for a quote in it, the text ends, a backslash and the quote
// follow, and it begins again.
var quoted = regexp.MustCompile(` '[^']*(?:'\\''[^']*)*'`)

func quotesSpaces(line string) bool {
	return slices.ContainsFunc(quoted.FindAllString(line, -1),
		func(q string) bool { return strings.Contains(q[1:], " ") })
}

func fold(text string, width int) string {
	line := []rune(Join(text))
	indent := []rune(strings.Repeat(" ", column(line, width/2)))
	var folded []string
	for end := breakOf(line, width); end < len(line); end = breakOf(line, width) {
		folded = append(folded, strings.TrimRight(Split(string(line[:end])), " "))
		rest := line[end:]
		line = slices.Concat(indent, rest[firstLetter(rest):])
	}
	return strings.Join(append(folded, Split(string(line))), "\n")
}

// column is where the text after the first column begins: after two spaces or more. In a line without columns it is two
// after the first letter.
func column(line []rune, most int) int {
	first := firstLetter(line)
	for i := first + 2; i < min(len(line), most+1); i++ {
		if line[i] != ' ' && line[i-1] == ' ' && line[i-2] == ' ' {
			return i
		}
	}
	return min(first+2, most)
}

// breakOf returns where a line of the width ends: between columns in its second half, or else at the last space that
// does not part a number from its unit or from what it numbers, or at the last space. If none fits, it is the first one
// after the width, or the end.
func breakOf(line []rune, width int) int {
	first, fits, columns := firstLetter(line), 0, 0 // so many letters fit
	for fits < len(line) && columns+widthOf(line[fits]) <= width {
		columns += widthOf(line[fits])
		fits++
	}
	if fits == len(line) {
		return fits
	}
	between, whole, last := 0, 0, 0
	for i := max(first+1, column(line, width/2)-1); i <= fits; i++ { // a label stays with the first word after it
		if line[i] != ' ' || line[i-1] == ' ' {
			continue
		}
		last = i
		if line[i+1] == ' ' { // Text has cut spaces at the end
			between = i
		}
		number := unicode.IsDigit(line[i-1]) || line[i-1] == ':' && unicode.IsDigit(line[i-2]) // of "2: 1.4 s"
		if between == i || !number {
			whole = i
		}
	}
	switch {
	case between > width/2:
		return between
	case whole > width/2:
		return whole
	case last > 0:
		return last
	}
	after := max(fits, first)
	if i := slices.Index(line[after:], ' '); i >= 0 {
		return after + i
	}
	return len(line)
}

func widthOf(r rune) int {
	if r == joined {
		return 1
	}
	return runewidth.RuneWidth(r)
}

func firstLetter(line []rune) int {
	return max(0, slices.IndexFunc(line, func(r rune) bool { return r != ' ' }))
}
