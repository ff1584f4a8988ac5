package layout

import (
	"slices"
	"strings"
)

// byColumns reads a table without names of its columns, by what the columns have.
func (t *table) byColumns() error {
	n := t.v.usual()
	if n <= 1 { // the lines are refused one by one
		t.d.Name, t.d.Columns = "ljspeech", named[0].Columns
		t.d.Base, t.d.plain, t.d.AsBefore = bases[0], true, t.d.Separator == '|' && t.d.Quotes != Yes && !t.d.CR
		return nil
	}
	if err := t.namesUnknown(); err != nil {
		return err
	}
	key := t.keyColumn(n)
	keys := t.v.values(key, 32)
	t.d.Base, _ = t.src.place(keys, mostlyPaths(keys))
	var certain []Role
	var err error
	if n == 2 {
		certain, err = t.two(key)
	} else {
		certain, err = t.more(key, n)
	}
	if err != nil {
		return err
	}
	t.d.Columns = certain
	t.d.Name = nameOf(certain)
	t.findRecordings()
	numbered(t, &t.d.Layout)
	if l, _ := byName(t.d.Name); l.Language != "" {
		t.d.Language = l.Language
	}
	if t.d.Quotes == Open {
		quoted := t.d.Layout
		quoted.Quotes = Yes
		plain := t.d.Layout
		plain.Quotes = No
		return t.question(Reading{quoted, ""}, Reading{plain, ""}, "quotes may be those of CSV or of the texts")
	}
	t.asBefore(n)
	t.remark()
	return nil
}

// numbered gives a layout of paths whose speakers are numbers the name of the trainer that has them.
func numbered(t *table, l *Layout) {
	if l.Name == "coqui" && t.v.columns[slices.Index(l.Columns, Speaker)].sort() == whole && t.exactKey(0) == Path {
		l.Name = "styletts2"
	}
}

// asBefore says whether older versions read the list alike.
func (t *table) asBefore(n int) {
	_, wide := t.v.wider(3)
	t.d.plain = t.d.Name == "ljspeech" && !t.d.HasPaths() && t.d.Base == bases[0]
	t.d.AsBefore = t.d.plain && t.d.Separator == '|' && t.d.Quotes == No && !t.d.CR && wide == 0
}

// nameOf returns the name of the layout with these columns, or "".
func nameOf(columns []Role) string {
	if slices.Equal(columns, []Role{Clip, Text}) {
		return "ljspeech"
	}
	for _, l := range named {
		if slices.Equal(l.Columns, columns) {
			return l.Name
		}
	}
	return ""
}

// keyColumn finds the column that names the recordings: the first with one that exists, else the first.
func (t *table) keyColumn(n int) int {
	for j := range min(n, mostColumns) {
		keys := t.v.values(j, 32)
		if _, found := t.src.place(keys, mostlyPaths(keys)); found > 0 {
			return j
		}
	}
	return 0
}

// two reads lists of two columns. A line with more may have a separator in its text, or a normalized text.
func (t *table) two(key int) ([]Role, error) {
	roles := []Role{Clip, Text}
	if key == 1 {
		roles = []Role{Text, Clip}
	}
	text := 1 - key
	if t.v.columns[text].sort() == decimal && t.v.columns[text].full() > 1 {
		return nil, t.noText(roles,
			"the only column beside that of the clips has numbers with decimals, which are no texts")
	}
	first, wide := t.v.wider(2)
	if wide == 0 {
		return roles, nil
	}
	if key == 0 && t.v.normal(1, 2) {
		return []Role{Clip, Text, Text}, nil
	}
	last, _ := byName(LastColumn)
	if d := t.d; d.Separator != '|' {
		last = d.with([]Role{t.exactKey(0), Text, Unused})
	}
	rest := t.d.with([]Role{t.exactKey(0), Rest})
	return nil, t.questionAt(first[0], Reading{rest, ""}, Reading{last, ""},
		"the text may have a separator in it, or there is one more column, in "+someLines(first, wide))
}

// exactKey is ID or Path, as it stands in a description.
func (t *table) exactKey(column int) Role {
	if mostlyPaths(t.v.values(column, 64)) {
		return Path
	}
	return ID
}

// normal reports whether column b has the normalized text of column a in all lines with both.
func (v *survey) normal(a, b int) bool {
	like, ok := v.likeness(a, b)
	return ok && like >= sure
}

// namesUnknown refuses a list whose first line has names of columns that are not known: single words where the others
// have texts, and no recording where the others have one.
func (t *table) namesUnknown() error {
	if len(t.v.samples) < 3 || !likeNames(t.v.samples[0].fields) {
		return nil
	}
	first := t.v.samples[0].fields
	spaces := 0
	for _, other := range t.v.samples[1:] {
		if strings.Contains(strings.Join(other.fields, ""), " ") {
			spaces++
		}
	}
	keys := t.v.values(0, 33)
	_, found := t.src.place(keys[1:], mostlyPaths(keys[1:]))
	if 2*spaces < len(t.v.samples) || 2*found < len(keys) {
		return nil
	}
	if _, here := t.src.place(keys[:1], false); here > 0 {
		return nil
	}
	return t.unknownNames(first)
}
