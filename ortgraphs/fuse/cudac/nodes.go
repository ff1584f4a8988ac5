package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

func (b *body) elementwise(n *fuse.Node) error {
	t := n.Out[0]
	if _, ok := held(t.Type); !ok {
		return unsupported("its elements are of type %s", t.Type)
	}
	var operands []string
	vector := false
	for _, o := range n.In {
		v, err := b.operand(n, o, b.loops.Of(t))
		if err != nil {
			return err
		}
		operands = append(operands, v.code)
		vector = vector || v.vector
	}
	code, err := function(n, operands)
	if err != nil {
		return err
	}
	if shorter, ok := b.ofNormal(n); ok {
		code = shorter
	} else if shorter, ok := b.ofLogistic(n); ok {
		code = shorter
	} else if shorter, ok := b.ofAngle(n, operands[0], vector); ok {
		code = shorter
	}
	if rounds(n) {
		if vector && slices.Contains(b.region.Out, t) {
			x := b.name()
			p := b.phases[b.begins[n]]
			p.elements = append(p.elements, fmt.Sprintf("const float %s = %s;", x, code))
			b.unrounded[t], code = x, x
		}
		code = "rounded(" + code + ")"
	}
	b.define(n, vector, code)
	return nil
}

// reduce adds a reduction along the row. Its result is known after the phase in which its operand is computed.
func (b *body) reduce(n *fuse.Node) error {
	t := n.Out[0]
	register, ok := held(t.Type)
	if !ok || register == "bool" {
		return unsupported("it reduces elements of type %s", t.Type)
	}
	x, err := b.operand(n, n.In[0], b.loops.Operand(n))
	if err != nil {
		return err
	}
	p, name := b.phases[b.begins[n]], b.name()
	p.row = append(p.row, fmt.Sprintf("%s %s_partial = %s;", register, name, identity(n.Op, register)))
	p.elements = append(p.elements, fmt.Sprintf("%s_partial = %s_of(%s_partial, %s);", name, n.Op, name, x.code))
	p.reductions = append(p.reductions, rowReduction{n.Op, register, name, isShort(t.Type)})
	b.values[t] = value{code: name}
	return nil
}

// identity is the result of a reduction of no elements.
func identity(op, register string) string {
	switch {
	case op == "sum":
		return "0"
	case (register == "float" || register == "double") && op == "max":
		return "-INFINITY"
	case register == "float" || register == "double":
		return "INFINITY"
	case op == "max":
		return map[string]string{"int": "-0x7fffffff - 1", "long long": "-0x7fffffffffffffffLL - 1"}[register]
	}
	return map[string]string{"int": "0x7fffffff", "long long": "0x7fffffffffffffffLL"}[register]
}

// sumColumns adds a reduction over the rows.
func (b *body) sumColumns(n *fuse.Node) error {
	if t := n.Out[0].Type; !isFloat(t) && !isDouble(t) {
		return unsupported("it reduces columns of type %s", t)
	}
	x, err := b.operand(n, n.In[0], b.loops.Operand(n))
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("sum%d[j]", len(b.sums))
	p := b.phases[b.begins[n]]
	p.elements = append(p.elements, fmt.Sprintf("if (live) %s = %s_of(%s, %s);", sum, n.Op, sum, x.code))
	b.sums = append(b.sums, n)
	return nil
}

// store writes the result of a node to memory. Where the region repeats it, one of the equal elements is written.
func (b *body) store(n *fuse.Node) error {
	t := n.Out[0]
	axes := b.loops.Of(t)
	at := flat(b.places.index(axes), t.Shape)
	pointer := fmt.Sprintf("o%d", slices.Index(b.region.Out, t))
	v := b.values[t]
	code := inMemory(stored(t.Type), v.code)
	has := func(a int) bool {
		return slices.ContainsFunc(axes, func(list []int) bool { return slices.Contains(list, a) })
	}
	condition := []string{"live"}
	for _, a := range b.shape.rows {
		if b.shape.sizes[a] > 1 && !has(a) {
			condition = append(condition, axisName(a)+" == 0")
		}
	}
	p := b.phases[b.begins[n]]
	if n.Kind == fuse.Reduction {
		p = b.phases[b.begins[n]+1]
	}
	if !slices.ContainsFunc(b.shape.cols, has) {
		if v.vector {
			return unsupported("a result repeats its elements")
		}
		p.row = append(p.row,
			fmt.Sprintf("if (first && %s) %s[%s] = %s;", strings.Join(condition, " && "), pointer, at, code))
		return nil
	}
	repeated := false
	for _, a := range b.shape.cols {
		if b.shape.sizes[a] > 1 && !has(a) {
			condition = append(condition, axisName(a)+" == 0")
			repeated = true
		}
	}
	consecutive := !repeated && b.consecutive(at, nil)
	b.lookUp(t, at, consecutive)
	if b.square {
		return b.storeSquare(condition, pointer, at, t, v.code)
	}
	register, _ := held(t.Type)
	if consecutive {
		name, element := b.name(), v.code
		if x, ok := b.unrounded[t]; ok {
			element = x
		}
		p.elements = append(p.elements, fmt.Sprintf("%s[jj] = %s;", name, element))
		p.stores = append(p.stores,
			access{name, pointer, "jj", stored(t.Type), register, at, strings.Join(condition, " && "), ""})
		return nil
	}
	p.elements = append(p.elements,
		fmt.Sprintf("if (%s) %s[%s] = %s;", strings.Join(condition, " && "), pointer, at, code))
	return nil
}
