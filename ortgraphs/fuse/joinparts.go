package fuse

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// joinParts makes a sum of tensors of which each is zero where the others are not a Concat of what is not zero, as the
// gradient of a tensor is that a model has divided by indices: of the queries, keys and values of
// nn.MultiheadAttention. Attention writes its gradients to their places in a Concat.
func joinParts(g *Graph) {
	p := &parts{known: map[*Tensor][]part{}}
	for _, n := range g.Nodes {
		if !n.is(Elementwise) || n.Op != "Add" {
			continue
		}
		list, ok := p.of(Operand{Tensor: n.Out[0]})
		if !ok || len(list) < 2 {
			continue
		}
		at, axis := 0, list[0].axis
		var in []Operand
		for _, x := range list {
			ok = ok && x.start == at && x.of.Tensor.Type == n.Out[0].Type
			at += x.of.Shape()[axis]
			in = append(in, x.of)
		}
		if ok && at == n.Out[0].Shape[axis] {
			n.Kind, n.Op, n.Axes, n.In = Join, "Concat", []int{axis}, in
		}
	}
	g.Nodes = reachable(g)
}

// part is what a tensor has along an axis from start on.
type part struct {
	axis, start int
	of          Operand
}

// parts finds those of tensors.
type parts struct{ known map[*Tensor][]part }

// of returns the parts of an operand that may not be zero, in their order: of one axis, and none at the same place. It
// returns false if it finds no such parts. A part may be in bf16 where the operand is in f32.
func (p *parts) of(o Operand) (list []part, ok bool) {
	if o.zeros() {
		return nil, true
	}
	n := o.Tensor.From
	if n == nil || !n.fusible() || !o.Plain() || n.Kind == Reduction {
		return nil, false
	}
	t := o.Tensor
	if list, ok := p.known[t]; ok {
		return list, list != nil
	}
	p.known[t] = nil
	switch {
	case n.Op == "Add" && slices.Equal(n.In[0].Shape(), t.Shape) && slices.Equal(n.In[1].Shape(), t.Shape):
		list, ok = p.both(n.In[0], n.In[1])
	case n.Op == "Cast" && isFloat(t.Type) && isFloat(n.In[0].Tensor.Type):
		list, ok = p.of(n.In[0])
		for _, x := range list { // the conversion rounds nothing
			ok = ok && (t.Type == onnxpb.TensorProto_FLOAT || x.of.Tensor.Type == t.Type)
		}
	case n.Op == "Pad" && n.Fill == 0:
		list, ok = padded(n)
	case n.Op == "Concat":
		ok = true
		start := 0
		for _, in := range n.In {
			list = appendPart(list, part{n.Axes[0], start, in})
			start += in.Shape()[n.Axes[0]]
		}
	}
	if !ok {
		return nil, false
	}
	p.known[t] = append([]part{}, list...)
	return list, true
}

// both returns the parts of a sum.
func (p *parts) both(a, b Operand) (list []part, ok bool) {
	for _, o := range []Operand{a, b} {
		own, ok := p.of(o)
		if !ok {
			return nil, false
		}
		list = append(list, own...)
	}
	slices.SortStableFunc(list, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	apart := func(i int) bool {
		x, before := list[i], list[i-1]
		return x.axis == before.axis && x.start >= before.start+before.of.Shape()[before.axis]
	}
	for i := 1; i < len(list); i++ {
		if !apart(i) {
			return nil, false
		}
	}
	return list, true
}

// padded returns the part of a Pad along one axis.
func padded(n *Node) (list []part, ok bool) {
	x := n.In[0]
	axis := -1
	for i, d := range n.Out[0].Shape {
		if x.Shape()[i] == d {
			continue
		}
		if axis >= 0 {
			return nil, false
		}
		axis = i
	}
	if axis < 0 {
		return nil, false
	}
	return appendPart(nil, part{axis, n.Pads[axis], x}), true
}

// appendPart adds a part that is not zero, before a conversion to f32.
func appendPart(list []part, x part) []part {
	c := x.of.Tensor.From
	if c != nil && c.fusible() && c.Op == "Cast" && c.Out[0].Type == onnxpb.TensorProto_FLOAT &&
		c.In[0].Tensor.Type == onnxpb.TensorProto_BFLOAT16 && slices.Equal(c.In[0].Shape(), c.Out[0].Shape) {
		x.of = c.In[0].through(x.of.Views)
	}
	if x.of.zeros() {
		return list
	}
	return append(list, x)
}

// zeros reports whether an operand is a constant of nothing but zeros.
func (o Operand) zeros() bool {
	data := o.Tensor.Data
	if v := o.Tensor.Value; v != nil && v.Proto != nil && data == nil { // too many numbers to be in Data
		raw := v.Proto.GetRawData()
		return len(raw) > 0 && !slices.ContainsFunc(raw, func(b byte) bool { return b != 0 })
	}
	return o.Tensor.Constant && len(data) > 0 && !slices.ContainsFunc(data, func(x float64) bool { return x != 0 })
}
