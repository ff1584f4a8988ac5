package layout

import (
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

func noHeader(s *Source, name string) error {
	return hint.Errorf("describe the columns: "+s.Flag+" columns=path,text (docs/data.md#layouts)",
		"%s: the layout %s has the names of its columns in the first line, and this one has none that are known",
		s.List, name)
}

// byHeader reads a table whose first line has the names of its columns.
func (t *table) byHeader(header []string) error {
	m := meaningOf(header)
	if m.text < 0 {
		m.text, m.normal = m.normal, -1
	}
	names := strings.Join(header, ", ")
	if m.key < 0 || m.text < 0 {
		what := "the text"
		if m.key < 0 {
			what = "the recording"
		}
		return hint.Errorf("describe the columns: "+t.src.Flag+" "+
			hint.Word("columns="+rolesText(guesses(m, len(header)))+t.d.options()),
			"%s: the first line has the names %s, of which none is known as that of %s", t.src.List, names, what)
	}
	if t.d.Quotes == Open {
		quoted, plain := t.d.with(m.roles(len(header), m.text)), t.d.with(m.roles(len(header), m.text))
		quoted.Quotes, plain.Quotes = Yes, No
		return t.question(Reading{quoted, ""}, Reading{plain, ""}, "quotes may be those of CSV or of the texts")
	}
	text := m.text
	if m.normal >= 0 {
		like, ok := t.v.likeness(m.text, m.normal)
		if ok && like < 1 && like < sure {
			return t.question(Reading{t.d.with(m.roles(len(header), m.normal)), ""},
				Reading{t.d.with(m.roles(len(header), m.text)), ""}, "two columns are texts")
		}
		text = m.normal
	}
	if m.texts > 1 && m.normal < 0 {
		for _, name := range textNames {
			if at := slices.Index(header, name); at >= 0 && at != m.text {
				if like, ok := t.v.likeness(m.text, at); ok && like < 1 {
					return t.question(Reading{t.d.with(m.roles(len(header), m.text)), ""},
						Reading{t.d.with(m.roles(len(header), at)), ""}, "two columns are texts")
				}
			}
		}
	}
	l := &t.d.Layout
	l.Columns = m.roles(len(header), text)
	if l.Name == "" || l.Name == "header" {
		l.Name = headerName(header, l.Separator)
	}
	l.Header = Yes
	if len(m.unknown) > 0 {
		t.d.Remarks = append(t.d.Remarks, "columns that are not known are not used: "+strings.Join(m.unknown, ", "))
	}
	t.findRecordings()
	if t.d.Name == "audiofolder" {
		t.d.splits(t.v.values(slices.Index(t.d.Columns, Path), mostSamples))
	}
	t.remark()
	return nil
}

// headerName names a list by its header.
func headerName(header []string, sep byte) string {
	has := func(name string) bool { return slices.Contains(header, name) }
	switch {
	case has("client_id") && has("path") && has("sentence"):
		return "common-voice"
	case has("file_name") && (sep == ',' || sep == '\t'):
		return "audiofolder"
	case has("audio_file") && has("text") && sep == '|':
		return "coqui"
	}
	return "header"
}

// guesses describes the columns as far as they are known, and the first others as what is missing.
func guesses(m meaning, n int) []Role {
	roles := m.roles(n, m.text)
	for _, missing := range []Role{Path, Text} {
		if missing == Path && m.key >= 0 || missing == Text && m.text >= 0 {
			continue
		}
		if at := slices.Index(roles, Unused); at >= 0 {
			roles[at] = missing
		} else {
			roles = append(roles, missing)
		}
	}
	return roles
}

// with returns the layout of the list with other columns.
func (d *Decision) with(columns []Role) Layout {
	l := d.Layout
	l.Name, l.Columns, l.Loose = "", columns, false
	return l
}

// options are those that a description of the columns of this list needs.
func (d *Decision) options() string {
	_, options, _ := strings.Cut((&Layout{Separator: d.Separator, Quotes: d.Quotes, Header: d.Header}).String(), ";")
	if options != "" {
		options = ";" + options
	}
	return options
}

// splitFolders are the folders that Hugging Face's audiofolder takes as splits.
var trainFolders, evalFolders, testFolders = []string{"train", "training"},
	[]string{"validation", "valid", "val", "dev", "eval"}, []string{"test", "testing"}

// splits recognises a list of several splits: the first folder of its paths names them.
func (d *Decision) splits(paths []string) {
	names := map[string]bool{}
	for _, path := range paths {
		folder, _, below := strings.Cut(path, "/")
		if !below {
			return
		}
		names[folder] = true
	}
	isAny := func(list []string) bool { return slices.ContainsFunc(list, func(n string) bool { return names[n] }) }
	if isAny(trainFolders) && (isAny(evalFolders) || isAny(testFolders)) {
		d.Splits = true
		d.Remarks = append(d.Remarks,
			"the folders of the recordings are splits: "+strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}

// InSplit reports whether a path is of a split, in a list of several.
func InSplit(audio string, eval bool) bool {
	folder, _, _ := strings.Cut(audio, "/")
	if eval {
		return slices.Contains(evalFolders, folder)
	}
	return !slices.Contains(evalFolders, folder) && !slices.Contains(testFolders, folder)
}
