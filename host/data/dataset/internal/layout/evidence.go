package layout

import (
	"slices"
)

// evidence is what the columns of a table beside that of the clips are.
type evidence struct {
	*table
	key     int
	texts   []int // columns of words
	numbers []int // whole numbers that are few, as those of speakers
	counts  []int // other whole numbers
	names   []int // few values
	tongues []int // names that are languages
}

func (t *table) gather(key, n int) (e evidence) {
	e.table, e.key = t, key
	for j := range min(n, mostColumns) {
		if j == key {
			continue
		}
		switch c := &t.v.columns[j]; c.sort() {
		case words:
			e.texts = append(e.texts, j)
		case whole:
			if c.few() {
				e.numbers = append(e.numbers, j)
			} else {
				e.counts = append(e.counts, j)
			}
		case name:
			if c.only(languages) {
				e.tongues = append(e.tongues, j)
			} else {
				e.names = append(e.names, j)
			}
		}
	}
	return e
}

// more reads lists of three columns or more.
func (t *table) more(key, n int) ([]Role, error) {
	e := t.gather(key, n)
	roles := make([]Role, n)
	roles[key] = Clip
	text, err := e.textColumns(roles)
	if err != nil {
		return nil, err
	}
	paths := mostlyPaths(t.v.values(key, 32))
	for _, j := range slices.Concat(e.numbers, e.counts) {
		is, sure := e.lengths(j, text, paths)
		if !is {
			continue
		}
		e.numbers = slices.DeleteFunc(e.numbers, func(i int) bool { return i == j })
		e.counts = slices.DeleteFunc(e.counts, func(i int) bool { return i == j })
		if !sure {
			e.counts = append(e.counts, j)
		}
	}
	return e.speakers(roles)
}

// textColumns sets the roles of the columns that are texts, and returns the last.
func (e *evidence) textColumns(roles []Role) (int, error) {
	with := func(columns ...int) Layout {
		r := slices.Clone(roles)
		r[e.key] = e.exactKey(e.key)
		for _, j := range columns {
			r[j] = Text
		}
		return e.d.with(r)
	}
	switch len(e.texts) {
	case 0:
		return 0, e.noneIsText(roles)
	case 1:
		roles[e.texts[0]] = Text
		return e.texts[0], e.proseBeside(with)
	}
	if text, ok := e.korean(); ok {
		roles[e.texts[0]], roles[text] = Text, Text
		return text, nil
	}
	for i := 1; i < len(e.texts); i++ {
		a, b := e.texts[i-1], e.texts[i]
		if e.v.normal(a, b) {
			continue
		}
		if first, other := e.v.nameColumn(a, b); first >= 0 { // a speaker for each clip or two, or another text
			r := slices.Clone(roles)
			r[e.key], r[first], r[other] = e.exactKey(e.key), Speaker, Text
			return 0, e.question(e.reading(r), e.reading(with(other).Columns), "a column may be the speaker")
		}
		return 0, e.question(e.reading(with(e.texts[:i]...).Columns), e.reading(with(e.texts[i:]...).Columns),
			"two columns are texts, and not of one clip in two forms")
	}
	for _, j := range e.texts {
		roles[j] = Text
	}
	return e.texts[len(e.texts)-1], e.proseBeside(with)
}

// nameColumn returns which of two columns has single words and may be names, -1 if none or both.
func (v *survey) nameColumn(a, b int) (names, texts int) {
	x, y := v.columns[a].meanWords(), v.columns[b].meanWords()
	switch {
	case x <= 1.5 && y > 2:
		return a, b
	case y <= 1.5 && x > 2:
		return b, a
	}
	return -1, -1
}

// korean recognises the columns of KSS: the script, as it is spoken, and in single letters, which are alike, and a
// translation into another script. The text is the second.
func (e *evidence) korean() (int, bool) {
	if len(e.texts) < 3 {
		return 0, false
	}
	last := e.texts[len(e.texts)-1]
	own, other := script(e.v.values(e.texts[1], 64)), script(e.v.values(last, 64))
	for i := 1; i < len(e.texts)-1; i++ {
		if !e.v.normal(e.texts[i-1], e.texts[i]) {
			return 0, false
		}
	}
	hangul := slices.IndexFunc(scripts, isHangul)
	return e.texts[1], own == hangul && other == 0
}

// speakers sets the roles of the columns that are speakers and languages.
func (e *evidence) speakers(roles []Role) ([]Role, error) {
	set := func(j int, r Role) []Role {
		other := slices.Clone(roles)
		other[e.key] = e.exactKey(e.key)
		if j >= 0 {
			other[j] = r
		}
		return other
	}
	if len(e.tongues) == 1 {
		roles[e.tongues[0]] = Language
	} else if len(e.tongues) > 1 {
		return nil, e.question(e.reading(set(e.tongues[0], Language)), e.reading(set(e.tongues[1], Language)),
			"two columns have languages")
	}
	who := slices.Concat(e.names, e.numbers)
	slices.Sort(who)
	if len(e.counts) > 0 {
		return nil, e.question(e.reading(set(e.counts[0], Speaker)), e.reading(set(-1, Unused)),
			"numbers may be those of speakers or something else")
	}
	switch len(who) {
	case 0:
		return roles, nil
	case 1:
		if c := &e.v.columns[who[0]]; c.voices() {
			roles[who[0]] = Speaker
			return roles, nil
		}
		return nil, e.question(e.reading(set(-1, Unused)), e.reading(set(who[0], Speaker)),
			"a column may be the speaker or something else")
	}
	one, other := e.reading(set(who[0], Speaker)), e.reading(set(who[1], Speaker))
	return nil, e.question(one, other, "two columns may be the speaker")
}
