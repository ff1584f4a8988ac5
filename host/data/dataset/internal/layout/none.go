package layout

import "slices"

// noneIsText asks which column of names or numbers is the text.
func (e *evidence) noneIsText(roles []Role) error {
	candidates := slices.Concat(e.names, e.numbers, e.counts)
	if len(candidates) > 1 && len(e.tongues) == 1 {
		roles[e.tongues[0]] = Language
	} else {
		candidates = append(candidates, e.tongues...)
	}
	slices.Sort(candidates)
	set := func(text int) []Role {
		r := slices.Clone(roles)
		r[e.key], r[text] = e.exactKey(e.key), Text
		return r
	}
	last := len(roles) - 1
	if last == e.key {
		last--
	}
	switch len(candidates) {
	case 0:
		return e.noText(set(last), "no column has texts: all beside that of the clips have numbers or nothing")
	case 1:
		return e.noText(set(candidates[0]), "no column has texts: each has numbers, or few values")
	}
	a, b := set(candidates[len(candidates)-1]), set(candidates[0])
	a[candidates[0]], b[candidates[len(candidates)-1]] = Speaker, Speaker
	// a few texts of many voices in two forms, or two forms of a name
	if len(candidates) == 2 && e.v.normal(candidates[0], candidates[1]) {
		b[candidates[1]] = Text
	}
	return e.question(e.reading(a), e.reading(b), "no column has sentences, or many values, as texts have")
}
