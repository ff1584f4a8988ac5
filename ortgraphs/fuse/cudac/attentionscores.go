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
	f := &placeFunction{attention: a, of: of, known: map[string]string{}}
	result, err := f.value(t, a.place)
	if err != nil {
		return nil, err
	}
	var parameters []string
	for _, p := range of {
		parameters = append(parameters, "float "+p.name)
	}
	rank := len(a.place)
	parameters = append(parameters, "int "+axisName(rank-2), "int "+axisName(rank-1))
	lines := []string{fmt.Sprintf("auto %s = [&](%s) -> float {", name, strings.Join(parameters, ", "))}
	w := &writer{}
	for _, q := range a.places.parts {
		if a.varies(q.value) && !strings.Contains(q.value.String(), "row") && !strings.Contains(q.value.String(), "column") {
			w.part(q)
		}
	}
	if text := strings.TrimSuffix(w.String(), "\n"); text != "" {
		lines = append(lines, strings.Split(text, "\n")...)
	}
	lines = append(lines, f.lines...)
	return append(lines, fmt.Sprintf("return %s;", result), "};"), nil
}

// placeFunction is a function in the making. bf16 is not rounded between its operations.
type placeFunction struct {
	*attention
	of    []place
	known map[string]string
	lines []string
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
	code, err := f.code(t, index, at)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("x%d", len(f.known))
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
			return sequence, nil
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
		shape := o.Shape()
		own := make([]affine, len(shape))
		for i, d := range shape {
			if d != 1 {
				own[i] = index[i+len(index)-len(shape)]
			}
		}
		source, err := f.places.back(own, o)
		if err != nil {
			return "", err
		}
		code, err := f.value(o.Tensor, source)
		if err != nil {
			return "", err
		}
		operands = append(operands, code)
	}
	return function(n, operands)
}

// sequenceOf returns the code of an element of a constant whose elements are equally far apart, as those of Range.
func sequenceOf(t *fuse.Tensor, at affine) (string, bool) {
	if !t.Constant || len(t.Data) < 2 || isFloat(t.Type) {
		return "", false
	}
	step := t.Data[1] - t.Data[0]
	for i, x := range t.Data {
		if x != t.Data[0]+float64(i)*step || math.Abs(x) > math.MaxInt32 {
			return "", false
		}
	}
	return at.times(int(step)).plusConstant(int(t.Data[0])).String(), true
}
