package cudac

import (
	"fmt"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// place is a value that a kernel has at each place, under a name.
type place struct {
	tensor *fuse.Tensor
	name   string
}

// function writes a function of the values at a place, and of the place, that returns an element of a tensor.
func (a *attention) function(name string, t *fuse.Tensor, of ...place) ([]string, error) {
	f := &placeFunction{attention: a, of: of}
	return f.write(name, t)
}

// scoreFunction writes the function of scores, whose first parameter says that the place is in a plain square, and a
// function that tells which squares are plain.
func (a *attention) scoreFunction() ([]string, error) {
	f := &placeFunction{attention: a, of: []place{{a.Product, "x"}}, plain: &plainSquares{}}
	lines, err := f.write("score", a.Scores)
	return append(lines, f.plain.function()), err
}

// placeFunction is a function in the making. bf16 is not rounded between its operations.
type placeFunction struct {
	*attention
	of        []place
	known     map[string]string
	depends   map[string]side   // by element
	sequences map[string]affine // the names of values that depend on the place only
	lines     []string
	plain     *plainSquares // nil if the function does not tell them apart
	terms     *terms        // nil if it is a function of query and key
}

func (f *placeFunction) write(name string, t *fuse.Tensor) ([]string, error) {
	f.known, f.depends, f.sequences = map[string]string{}, map[string]side{}, map[string]affine{}
	result, err := f.value(t, f.place)
	if err != nil {
		return nil, err
	}
	var parameters []string
	if f.plain != nil {
		parameters = append(parameters, "bool plain")
	}
	for _, p := range f.of {
		parameters = append(parameters, "float "+p.name)
	}
	rank := len(f.place)
	parameters = append(parameters, "int "+axisName(rank-2), "int "+axisName(rank-1), "const query_terms &query",
		"const key_terms &key")
	lines := []string{fmt.Sprintf("auto %s = [&](%s) -> float {", name, strings.Join(parameters, ", "))}
	lines = append(lines, f.divisions(ofQuery|ofKey)...)
	lines = append(lines, f.lines...)
	return append(lines, fmt.Sprintf("return %s;", result), "};"), nil
}

// divisions writes the quotients that differ within a block, as far as they depend on nothing but some sides.
func (f *placeFunction) divisions(of side) []string {
	w := &writer{}
	for _, q := range f.places.divisions {
		if on := f.sides(q.value); on != 0 && on&^of == 0 {
			w.division(q)
		}
	}
	if w.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(w.String(), "\n"), "\n")
}

// value returns the code of an element.
func (f *placeFunction) value(t *fuse.Tensor, index []affine) (string, error) {
	at := flat(index, t.Shape)
	for _, p := range f.of {
		if p.tensor != t {
			continue
		}
		want := flat(f.place, f.Product.Shape)
		if t.Elements() < f.Product.Elements() { // a value of each row
			rank := len(f.place)
			want = flat(f.place[:rank-1], f.Product.Shape[:rank-1])
		}
		if at.String() != want.String() {
			return "", unsupported("%s is read at another place", t.Name)
		}
		return p.name, nil
	}
	key := fmt.Sprintf("%p %s", t, at)
	if name, ok := f.known[key]; ok {
		return name, nil
	}
	register, ok := held(t.Type)
	if !ok {
		return "", unsupported("its elements are of type %s", t.Type)
	}
	if l := f.termsOf(t, index); l != nil {
		name, err := l.value(t, index, register)
		f.known[key] = name
		return name, err
	}
	code, err := f.code(t, index, at)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("x%d", len(f.known))
	if sequence, ok := sequenceOf(t, at); ok {
		f.sequences[name] = sequence
	}
	f.known[key] = name
	f.lines = append(f.lines, fmt.Sprintf("const %s %s = %s;", register, name, code))
	return name, nil
}

func (f *placeFunction) code(t *fuse.Tensor, index []affine, at affine) (string, error) {
	n := t.From
	if n == nil || !f.inside[n] {
		if t.Constant && len(t.Data) == 1 {
			return literal(t.Data[0], t.Type), nil
		}
		if sequence, ok := sequenceOf(t, at); ok {
			return sequence.String(), nil
		}
		element := fmt.Sprintf("%s[%s]", f.input(t), at)
		if isShort(t.Type) {
			element = "float(" + element + ")"
		}
		return element, nil
	}
	if n.Kind != fuse.Elementwise {
		return "", unsupported("%s depends on %s", t.Name, n.Op)
	}
	var operands []string
	for _, o := range n.In {
		code, err := f.value(o.Tensor, f.places.source(index, o))
		if err != nil {
			return "", err
		}
		operands = append(operands, code)
	}
	code, err := function(n, operands)
	if err == nil && f.plain != nil {
		code = f.compare(n.Op, operands, code)
	}
	return code, err
}

// sequenceOf returns the value of an element of a constant whose elements are equally far apart, as those of Range.
func sequenceOf(t *fuse.Tensor, at affine) (affine, bool) {
	if !t.Constant || len(t.Data) < 2 || isFloat(t.Type) {
		return affine{}, false
	}
	step := t.Data[1] - t.Data[0]
	for i, x := range t.Data {
		if x != t.Data[0]+float64(i)*step || math.Abs(x) > math.MaxInt32 {
			return affine{}, false
		}
	}
	return at.times(int(step)).plusConstant(int(t.Data[0])), true
}
