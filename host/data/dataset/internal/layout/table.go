package layout

import (
	"fmt"
	"slices"
	"strings"
)

// table is a list of columns while it is recognised.
type table struct {
	src *Source
	v   *survey
	d   *Decision
}

// columns decides how a list of columns is read.
func (s *Source) columns(asked *Layout, head string) (*Decision, error) {
	lines := headLines(head)
	sep, header := splitHead(lines)
	if header == nil && asked == nil {
		sep = s.separator(lines, sep)
	}
	if asked != nil && asked.Separator != 0 {
		if sep != asked.Separator {
			header = nil
		}
		sep = asked.Separator
	}
	loose := asked != nil && asked.Loose
	cr, e, err := s.lineEnds(loose, func(line string) bool { return strings.IndexByte(line, sep) > 0 })
	if err != nil {
		return nil, err
	}
	cr = cr && !loose
	v := &survey{sep: sep, cr: cr}
	switch {
	case asked != nil && asked.Header == No:
		header = nil
	case header == nil && asked != nil && asked.Header == Yes:
		list, _ := fields(slices.Concat(lines, []string{""})[0], sep, true)
		for _, name := range list {
			header = append(header, plainName(name))
		}
	}
	if header != nil && (asked == nil || asked.Header != Yes) && s.isClip(lines[0], sep) {
		header = nil
	}
	if header != nil {
		v.skip = 1 + strings.Count(head[:strings.Index(head, lines[0])], "\n")
	}
	d := &Decision{
		Lines: e.feeds + e.returns, NameLine: v.skip,
		Layout: Layout{Separator: sep, Header: choice(header != nil), CR: cr},
	}
	t := &table{s, v, d}
	if err := t.quote(asked); err != nil {
		return nil, err
	}
	switch {
	case asked != nil:
		return d, t.follow(asked, header)
	case header != nil:
		return d, t.byHeader(header)
	}
	return d, t.byColumns()
}

// isClip reports whether a first line that could be names is a clip with a recording.
func (s *Source) isClip(line string, sep byte) bool {
	list, _ := fields(line, sep, true)
	for _, paths := range []bool{false, true} {
		for _, field := range list {
			if _, found := s.place([]string{strings.TrimSpace(field)}, paths); found > 0 {
				return true
			}
		}
	}
	return false
}

// quote makes the survey, and decides whether fields are quoted. Commas and a header are CSV.
func (t *table) quote(asked *Layout) error {
	csv := t.v.sep == ',' || t.v.sep == ';'
	if asked != nil && asked.Quotes != Open {
		csv = asked.Quotes == Yes
	}
	t.v.quotes, t.d.Quotes = csv, choice(csv)
	if err := t.src.survey(t.v); err != nil {
		return err
	}
	if csv || asked != nil && (asked.Quotes != Open || asked.Header != Yes) {
		return nil
	}
	t.d.Quotes = t.v.quoting.decide(func(column int) int {
		if column < len(t.v.columns) {
			return t.v.columns[column].lines
		}
		return 0
	})
	if t.d.Quotes == No {
		return nil
	}
	first := t.v.quoting.first
	skip := t.v.skip
	*t.v = survey{sep: t.v.sep, cr: t.v.cr, quotes: true, skip: skip}
	t.v.quoting.first = first
	return t.src.survey(t.v)
}

// follow completes an asked layout by what the list shows.
func (t *table) follow(asked *Layout, header []string) error {
	l := *asked
	l.Separator, l.Quotes, l.Header, l.CR = t.d.Separator, t.d.Quotes, t.d.Header, t.d.CR
	if l.Quotes == Open {
		l.Quotes = No
	}
	t.d.Layout = l
	switch {
	case header != nil && l.Name != "": // the names say which columns a layout has
		return t.byHeader(header)
	case l.Header == Yes && l.Name != "":
		return noHeader(t.src, l.Name)
	}
	t.findRecordings()
	t.remark()
	return nil
}

// findRecordings decides whether the keys are ids or paths, and where the recordings are.
func (t *table) findRecordings() {
	l := &t.d.Layout
	at := slices.IndexFunc(l.Columns, func(r Role) bool { return r == Clip || r == ID || r == Path })
	if l.Loose {
		l.Base = bases[0]
		return
	}
	keys := t.v.values(at, 64)
	if l.Columns[at] == Clip {
		l.Paths = mostlyPaths(keys)
	}
	l.Base, _ = t.src.place(keys, l.HasPaths())
}

func mostlyPaths(keys []string) bool {
	n := 0
	for _, key := range keys {
		if HasEnding(key) {
			n++
		}
	}
	return 2*n > len(keys)
}

// remark says what is unusual about the lines.
func (t *table) remark() {
	if t.d.Loose {
		return
	}
	var counts []int
	for n := range t.v.written {
		counts = append(counts, n)
	}
	if len(counts) > 1 && len(t.v.counts) > 1 { // a column that is empty at the end of a line counts as one
		slices.Sort(counts)
		var parts []string
		for _, n := range counts {
			c := t.v.written[n]
			parts = append(parts, fmt.Sprintf("%d in %s", n, someLines(c.first, c.lines)))
		}
		t.d.Remarks = append(t.d.Remarks, "the lines have different numbers of columns: "+strings.Join(parts, ", "))
	}
	if t.d.CR {
		t.d.Remarks = append(t.d.Remarks, "lines end in a carriage return alone")
	}
}

// someLines names lines: "3 lines (7, 9, 12)".
func someLines(first []int, lines int) string {
	names := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(first)), ", "), "[]")
	switch {
	case lines == 1:
		return "line " + names
	case lines > len(first):
		names += ", ..."
	}
	return fmt.Sprintf("%d lines (%s)", lines, names)
}
