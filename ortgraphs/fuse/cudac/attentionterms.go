package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// side is what a value depends on within a block.
type side int

const (
	ofQuery side = 1 << iota
	ofKey
	ofPlace // a product, or another value that a function is given
)

// terms are the values of a query, or of a key, that functions of both read: lengths, biases, hashes. A thread keeps
// those of its own rows. Of the other side, a block of threads asks for the next ones while it computes, and not at
// each place when a product has been waited for. The values of neither are the same everywhere.
type terms struct {
	name     string
	side     side
	function placeFunction
	fields   []string
	values   []string
}

func newTerms(a *attention, name string, of side) *terms {
	l := &terms{name: name, side: of}
	l.function = placeFunction{attention: a, known: map[string]string{}, sequences: map[string]affine{}, terms: l}
	return l
}

// termsOf returns the terms of which an element is one, or nil. Constants and places are none.
func (f *placeFunction) termsOf(t *fuse.Tensor, index []affine) *terms {
	if f.terms != nil || t.Constant && len(t.Data) == 1 {
		return nil
	}
	if _, ok := sequenceOf(t, flat(index, t.Shape)); ok {
		return nil
	}
	switch f.sidesOf(t, index) {
	case 0:
		return f.termLists.everywhere
	case ofQuery:
		return f.termLists.query
	case ofKey:
		return f.termLists.key
	}
	return nil
}

// sidesOf returns what an element depends on.
func (f *placeFunction) sidesOf(t *fuse.Tensor, index []affine) side {
	for _, p := range f.of {
		if p.tensor == t {
			return ofPlace
		}
	}
	at := flat(index, t.Shape)
	switch {
	case t.From == nil || !f.inside[t.From]:
		return f.sides(at)
	case t.From.Kind != fuse.Elementwise:
		return ofPlace
	}
	element := fmt.Sprintf("%p %s", t, at)
	of, found := f.depends[element]
	if !found {
		for _, o := range t.From.In {
			of |= f.sidesOf(o.Tensor, f.places.source(index, o))
		}
		f.depends[element] = of
	}
	return of
}

// sides returns what a place in memory depends on.
func (f *placeFunction) sides(e affine) (of side) {
	rank := len(f.place)
	for name := range e.factors {
		switch name {
		case axisName(rank - 2):
			of |= ofQuery
		case axisName(rank - 1):
			of |= ofKey
		case "row", "column":
			of |= ofPlace
		default:
			if q, ok := f.places.division(name); ok {
				of |= f.sides(q.value)
			}
		}
	}
	return of
}

// value adds an element to the terms, and returns its name.
func (l *terms) value(t *fuse.Tensor, index []affine, register string) (string, error) {
	name, err := l.function.value(t, index)
	if err != nil {
		return "", err
	}
	if !slices.Contains(l.values, name) {
		l.fields = append(l.fields, fmt.Sprintf("%s %s;", register, name))
		l.values = append(l.values, name)
	}
	return l.name + "." + name, nil
}

// lines are the type of the terms and the function that returns them.
func (l *terms) lines(parameter string) []string {
	lines := []string{
		fmt.Sprintf("struct %s_terms { %s };", l.name, strings.Join(l.fields, " ")),
		fmt.Sprintf("auto of_%s = [&](%s) -> %[1]s_terms {", l.name, parameter),
	}
	if len(l.fields) > 0 {
		lines = append(lines, l.function.divisions(l.side)...)
	}
	lines = append(lines, l.function.lines...)
	return append(lines, fmt.Sprintf("return {%s};", strings.Join(l.values, ", ")), "};")
}

// maxTerms is how many values of a query or a key fit into shared memory beside the matrices, in 8 bytes each.
const maxTerms = 8

// termLists are the terms that the functions of a region read.
type termLists struct{ everywhere, query, key *terms }

// fit says why a kernel has no room for the terms.
func (l termLists) fit() error {
	if n := max(len(l.query.fields), len(l.key.fields)); n > maxTerms {
		return unsupported("its scores and weights read %d values of a query or a key, more than %d", n, maxTerms)
	}
	return nil
}

func newTermLists(a *attention) termLists {
	return termLists{newTerms(a, "everywhere", 0), newTerms(a, "query", ofQuery), newTerms(a, "key", ofKey)}
}

// lines are the functions that return the terms of a query and of a key, and what is the same everywhere. They are
// complete when all functions that read them have been generated.
func (l termLists) lines(query, key string) (lines []string) {
	if len(l.everywhere.fields) > 0 {
		lines = append(l.everywhere.lines(""), "const everywhere_terms everywhere = of_everywhere();")
	}
	lines = append(lines, l.query.lines("int "+query)...)
	return append(lines, l.key.lines("int "+key)...)
}
