package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

func (l *lowering) reshape(n *shapes.Node) bool {
	v := n.Out[0]
	l.operands[v] = l.operand(n.In[0]).view(View{Op: Reshape, To: sizes(v)})
	return true
}

func (l *lowering) transpose(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	perm, given, _ := numbers(n, len(n.In), "perm")
	if !given {
		for i := range x.Shape() {
			perm = slices.Insert(perm, 0, i)
		}
	}
	for i, axis := range perm {
		var ok bool
		if perm[i], ok = within(axis, len(v.Shape)); !ok {
			return false
		}
	}
	if !slices.IsSorted(perm) {
		x = x.view(View{Op: Transpose, Perm: perm, To: sizes(v)})
	}
	l.operands[v] = x
	return true
}

func (l *lowering) expand(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	if !slices.Equal(x.Shape(), sizes(v)) {
		x = x.view(View{Op: Expand, To: sizes(v)})
	}
	l.operands[v] = x
	return true
}

// tile expands a dimension of 1 before each that is repeated, and joins the two.
func (l *lowering) tile(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	repeats, given, ok := numbers(n, 1, "")
	if !given || !ok || len(repeats) != len(x.Shape()) ||
		slices.ContainsFunc(repeats, func(times int) bool { return times < 1 }) {
		return false
	}
	var apart, expanded []int
	for axis, size := range x.Shape() {
		if times := repeats[axis]; times > 1 {
			apart, expanded = append(apart, 1), append(expanded, times)
		}
		apart, expanded = append(apart, size), append(expanded, size)
	}
	if len(apart) > len(x.Shape()) {
		x = x.view(View{Op: Reshape, To: apart}).view(View{Op: Expand, To: expanded}).view(
			View{Op: Reshape, To: sizes(v)})
	}
	l.operands[v] = x
	return true
}

func (l *lowering) constantOfShape(n *shapes.Node) bool {
	v, x := n.Out[0], 0.0
	if a := n.Attribute("value"); a != nil {
		var ok bool
		if x, ok = shapes.Number(a.GetT()); !ok {
			return false
		}
	}
	l.operands[v] = scalar(x, v.Type).view(View{Op: Expand, To: sizes(v)})
	return true
}

// constant makes a large Constant one. A small one has its numbers already.
func (l *lowering) constant(n *shapes.Node) bool {
	l.operands[n.Out[0]] = Operand{Tensor: constantOf(n.Out[0])}
	return true
}

// span makes a long Range constant. A short one is constant already.
func (l *lowering) span(n *shapes.Node) bool {
	for i := range n.In {
		if _, given, ok := numbers(n, i, ""); !given || !ok {
			return false
		}
	}
	l.operands[n.Out[0]] = Operand{Tensor: constantOf(n.Out[0])}
	return true
}

// cut returns the view that takes count elements of a dimension.
func cut(x Operand, axis, start, step, count int) Operand {
	to := slices.Clone(x.Shape())
	if start == 0 && step == 1 && count == to[axis] {
		return x
	}
	to[axis] = count
	return x.view(View{Op: Slice, Axis: axis, Start: start, Step: step, To: to})
}

func (l *lowering) slice(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	rank := len(x.Shape())
	var lists [4][]int // starts, ends, axes, steps
	for i := range lists {
		list, given, ok := numbers(n, i+1, "")
		if !ok {
			return false
		}
		lists[i] = list
		for j := 0; !given && j < len(lists[0]); j++ {
			lists[i] = append(lists[i], [...]int{0, 0, j, 1}[i])
		}
	}
	if len(lists[1]) != len(lists[0]) || len(lists[2]) != len(lists[0]) || len(lists[3]) != len(lists[0]) {
		return false
	}
	for j, start := range lists[0] {
		axis, ok := within(lists[2][j], rank)
		if !ok {
			return false
		}
		size, step := x.Shape()[axis], lists[3][j]
		if start < 0 {
			start += size
		}
		if step > 0 {
			start = min(max(start, 0), size)
		} else {
			start = min(max(start, 0), size-1)
		}
		x = cut(x, axis, start, step, int(v.Shape[axis]))
	}
	l.operands[v] = x
	return true
}

func (l *lowering) split(n *shapes.Node) bool {
	x := l.operand(n.In[0])
	axis, ok := within(integer(n, "axis", 0), len(x.Shape()))
	if !ok || slices.Contains(n.Out, nil) { // the size of a part without a name is not known
		return false
	}
	start := 0
	for _, v := range n.Out {
		l.operands[v] = cut(x, axis, start, 1, int(v.Shape[axis]))
		start += int(v.Shape[axis])
	}
	return true
}

func (l *lowering) concat(n *shapes.Node) bool {
	v := n.Out[0]
	axis, ok := within(integer(n, "axis", 0), len(v.Shape))
	if !ok || slices.Contains(n.In, nil) {
		return false
	}
	p := &Node{Kind: Join, Op: "Concat", Axes: []int{axis}}
	for _, in := range n.In {
		p.In = append(p.In, l.operand(in))
	}
	l.operands[v] = l.add(p, v.Name, v.Type, sizes(v))
	return true
}

// pad adds a Pad; a negative number of elements is a slice.
func (l *lowering) pad(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	rank := len(x.Shape())
	list, given, ok := numbers(n, 1, "")
	axes, some, known := numbers(n, 3, "")
	if !given || !ok || !known || text(n, "mode", "constant") != "constant" {
		return false
	}
	if !some {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	p := &Node{Kind: Join, Op: "Pad", Pads: make([]int, rank)}
	if n.Input(2) != nil {
		if p.Fill, ok = small(l.operand(n.In[2])); !ok {
			return false
		}
	}
	for i, a := range axes {
		axis, ok := within(a, rank)
		if !ok {
			return false
		}
		before, after := list[i], list[i+len(axes)]
		p.Pads[axis] = max(before, 0)
		x = cut(x, axis, max(-before, 0), 1, x.Shape()[axis]+min(before, 0)+min(after, 0))
	}
	if slices.Equal(x.Shape(), sizes(v)) {
		l.operands[v] = x
		return true
	}
	p.In = []Operand{x}
	l.operands[v] = l.add(p, v.Name, v.Type, sizes(v))
	return true
}
