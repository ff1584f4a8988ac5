package layout

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/shared/hint"
)

func isHangul(t *unicode.RangeTable) bool { return t == unicode.Hangul }

// Reading is one way to read a list.
type Reading struct {
	Layout
	Says string // the clip of the example line
}

// Question is a list that can be read in two ways.
type Question struct {
	List, Why string
	Flag      string // that decides
	Line      int    // of the example
	Example   string // the line
	Readings  [2]Reading
}

func (q *Question) Error() string { return strings.Join(q.Lines(), "\n") }

// Lines returns the lines of the message (package visible).
func (q *Question) Lines() []string {
	lines := []string{fmt.Sprintf("%s can be read in two ways: %s; line %d is %s", q.List, q.Why, q.Line, q.Example)}
	for _, r := range q.Readings {
		lines = append(lines, fmt.Sprintf("  %s %s: %s", q.Flag, hint.Word(r.String()), r.Says))
	}
	return lines
}

// Hint has the two flags.
func (q *Question) Hint() string {
	return fmt.Sprintf("say which: %s %s or %s %s", q.Flag, hint.Word(q.Readings[0].String()), q.Flag,
		hint.Word(q.Readings[1].String()))
}

// reading is a layout with these columns, under its name if it has one.
func (t *table) reading(columns []Role) Reading {
	l := t.d.with(columns)
	general := slices.Clone(columns)
	for i, r := range general {
		if r == ID || r == Path {
			general[i] = Clip
		}
	}
	if l.Name = nameOf(general); slices.Contains(general, Unused) {
		l.Name = "" // the description says what is not used
	}
	if l.Name != "" {
		l.Columns = general
		numbered(t, &l)
	}
	if l.Quotes == Open {
		l.Quotes = No
	}
	if l.isLastColumn() {
		l, _ = byName(LastColumn)
	}
	return Reading{l, ""}
}

// isLastColumn reports whether only the id in the first column and the text in the last one are used.
func (l *Layout) isLastColumn() bool {
	last := len(l.Columns) - 1
	if l.Base != bases[0] || l.Separator != '|' || l.Quotes == Yes || l.Header == Yes || l.CR || last < 2 ||
		l.Columns[0] != ID || l.Columns[last] != Text {
		return false
	}
	return !slices.ContainsFunc(l.Columns[1:last], func(r Role) bool { return r != Unused })
}

// question asks which of two readings is meant. The example is the first line in which they differ.
func (t *table) question(a, b Reading, why string) error {
	number := 0
	if len(t.v.samples) > 0 {
		number = t.v.samples[0].number
	}
	for _, sample := range t.v.samples {
		line := strings.Join(sample.fields, string(t.v.sep))
		if !t.v.quotes && t.says(&a.Layout, line) != t.says(&b.Layout, line) {
			number = sample.number
			break
		}
	}
	return t.questionAt(number, a, b, why)
}

func (t *table) questionAt(number int, a, b Reading, why string) error {
	line := t.line(number)
	for _, r := range []*Reading{&a, &b} {
		r.Says = t.says(&r.Layout, line)
	}
	return &Question{t.src.List, why, t.src.Flag, number, brief(line), [2]Reading{a, b}}
}

// line returns a line of the list.
func (t *table) line(number int) (text string) {
	_ = t.src.scan(records{t.v.sep, t.v.cr, t.v.quotes}.split, func(at int, line []byte) bool {
		if at == number {
			text = string(line)
		}
		return at < number
	})
	return text
}

// says is the clip of a line, as a layout reads it.
func (t *table) says(l *Layout, line string) string {
	c := l.Cut(line, t.src.Clean)
	if c.Reason != "" {
		return c.Reason
	}
	parts := []string{"text " + brief(c.Text)}
	if slices.Contains(l.Columns, Speaker) {
		parts = append(parts, "speaker "+brief(c.Speaker))
	}
	if slices.Contains(l.Columns, Language) {
		parts = append(parts, "language "+brief(c.Language))
	}
	return strings.Join(parts, ", ")
}

// brief quotes a value, and shortens it.
func brief(value string) string {
	const most = 100
	if r := []rune(value); len(r) > most {
		value = string(r[:most]) + "..."
	}
	return `"` + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, value) + `"`
}

// noText refuses a list without a column that is a text. The hint has the reading with one.
func (t *table) noText(roles []Role, why string) error {
	r := t.reading(roles)
	return hint.Errorf("if it is the text, say so: "+t.src.Flag+" "+hint.Word(r.String()), "%s: %s; line %d is %s",
		t.src.List, why, t.v.samples[0].number, brief(t.line(t.v.samples[0].number)))
}

// unknownNames refuses a first line that seems to have names of columns.
func (t *table) unknownNames(names []string) error {
	t.d.Header = Yes
	roles := make([]Role, len(names))
	roles[0], roles[1] = t.exactKey(0), Text
	return hint.Errorf("say what the columns are, - for one that is not used: "+t.src.Flag+" "+
		hint.Word("columns="+rolesText(roles)+t.d.options()),
		"%s: the first line seems to have names of columns, which are not known: %s", t.src.List,
		brief(strings.Join(names, ", ")))
}
