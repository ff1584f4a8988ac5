package fuse

import "slices"

// Windows is a Concat of slices of one operand that follow each other at equal distances: of each part i, the dimension
// Axis begins at Start + i * Distance and has every Step-th element. A convolution joins its input so.
type Windows struct {
	Axis, Start, Step, Distance int
	Parts                       int
}

// findWindows writes each Concat of such slices as a node that reads the operand once.
func findWindows(g *Graph) {
	for _, n := range g.Nodes {
		if x, w, ok := windowsOf(n); ok {
			n.Op, n.In, n.Windows = "Windows", []Operand{x}, w
		}
	}
}

// windowsOf returns what the parts of a Concat are slices of, if they are windows.
func windowsOf(n *Node) (x Operand, w Windows, ok bool) { return joinedWindows(n, sliced) }

// joinedWindows is windowsOf with a function that says what a part is a slice of.
func joinedWindows(n *Node, sliced func(Operand) (Operand, Windows, bool)) (x Operand, w Windows, ok bool) {
	if !n.is(Join) || n.Op != "Concat" || len(n.In) < 2 {
		return x, w, false
	}
	x, w, ok = sliced(n.In[0])
	if !ok || w.Axis == n.Axes[0] {
		return x, w, false
	}
	w.Parts = len(n.In)
	for i, o := range n.In[1:] {
		other, v, ok := sliced(o)
		if i == 0 {
			w.Distance = v.Start - w.Start
		}
		if !ok || other.Tensor != x.Tensor || !sameViews(other.Views, x.Views) || v.Axis != w.Axis ||
			v.Step != w.Step || v.Start != w.Start+(i+1)*w.Distance || !slices.Equal(o.Shape(), n.In[0].Shape()) {
			return x, w, false
		}
	}
	return x, w, true
}

// sliced returns what an operand is a slice of: a Slice is its last view.
func sliced(o Operand) (Operand, Windows, bool) {
	last := len(o.Views) - 1
	if last < 0 || o.Views[last].Op != Slice {
		return o, Windows{}, false
	}
	v := o.Views[last]
	return Operand{o.Tensor, o.Views[:last]}, Windows{Axis: v.Axis, Start: v.Start, Step: v.Step}, true
}

// Part returns the operand of which part i consists.
func (n *Node) Part(i int) Operand {
	w := n.Windows
	return cut(n.In[0], w.Axis, w.Start+i*w.Distance, w.Step, n.Out[0].Shape[w.Axis])
}
