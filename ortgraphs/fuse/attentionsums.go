package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ColumnSum is the sum of a result over all of its outer dimensions, as the gradient of a bias is: element i of Out is
// the sum of all elements of Of whose place in memory has the rest i when it is divided by Columns.
type ColumnSum struct {
	Of, Out *Tensor
	Columns int
}

// sumResults lets the backward region of an attention add up the columns of its results: its kernels have them in
// shared memory, and a region of its own would read them from the GPU's memory. A result that nothing but the sum reads
// keeps the region of its own, because the kernels write no result that is not in Region.Out.
func sumResults(p *partition) {
	for _, n := range p.graph.Nodes {
		g := n.group
		if !n.is(Reduction) || len(g.nodes) != 2 || g.nodes[1] != n {
			continue
		}
		cast := g.nodes[0].Out[0]
		s, ok := columnSum(g.nodes[0], n)
		if !ok || len(p.uses[cast]) != 1 || p.outputs[cast] || s.Of.From == nil {
			continue
		}
		whole := s.Of.From.group
		a, ok := whole.work.(*Attention)
		readElsewhere := p.outputs[s.Of] ||
			slices.ContainsFunc(p.uses[s.Of], func(u use) bool { return u.node.group != whole && u.node.group != g })
		if !ok || !readElsewhere || !a.sums(s) {
			continue
		}
		a.Backward.ColumnSums = append(a.Backward.ColumnSums, s)
		for _, n := range g.nodes {
			n.group = whole
		}
		whole.nodes, g.nodes = append(whole.nodes, g.nodes...), nil
	}
}

// columnSum returns the sum that a conversion to f32 and a reduction compute.
func columnSum(cast, n *Node) (s ColumnSum, ok bool) {
	t := cast.Out[0]
	if cast.Op != "Cast" || n.Op != "sum" || t.Type != onnxpb.TensorProto_FLOAT || n.In[0].Tensor != t ||
		!cast.In[0].Reshaped() || !n.In[0].Reshaped() {
		return s, false
	}
	s = ColumnSum{Of: cast.In[0].Tensor, Out: n.Out[0], Columns: n.Out[0].Elements()}
	outer := 1
	for i, d := range n.In[0].Shape() {
		if outer*s.Columns < t.Elements() && d > 1 && !slices.Contains(n.Axes, i) {
			return s, false // an outer dimension is kept
		}
		outer *= d
	}
	return s, s.Columns > 1
}

// sums reports whether the kernels can add up the columns of a result: in the memory of Of, each row of a matrix begins
// at the same column as the others, and the results together have all columns. Package cudac relies on it: it has no
// kernel for the region otherwise.
func (a *Attention) sums(s ColumnSum) bool {
	if a.Backward == nil || slices.ContainsFunc(a.Backward.ColumnSums, func(o ColumnSum) bool { return o.Of == s.Of }) {
		return false
	}
	columns := 0
	for _, r := range a.Results {
		if r.Out != s.Of {
			continue
		}
		own, ok := r.columns(s.Columns)
		if !ok {
			return false
		}
		columns += own
	}
	return columns == s.Columns
}

// columns returns how many of so many columns the result has, and false if its part of a row of all columns is not the
// same in each row.
func (r Result) columns(all int) (own int, ok bool) {
	a := newAxes()
	whole := a.whole(r.Product.Shape)
	l, ok := a.through(whole, r.Views)
	if !ok || !a.covers(l, r.Shape()) {
		return 0, false
	}
	rank := len(whole)
	rows, elements := whole[rank-2], whole[rank-1]
	if r.Turned {
		rows, elements = elements, rows
	}
	rows, elements = a.expand(rows), a.expand(elements)
	own = 1
	for i, atoms := range l {
		step := product(r.Out.Shape[i+1:])
		for _, x := range slices.Backward(a.expand(atoms)) {
			size := a.size[x-1]
			switch {
			case step%all == 0 && !slices.Contains(elements, x):
			case step*size <= all && !slices.Contains(rows, x):
				own *= size
			default:
				return 0, false
			}
			step *= size
		}
	}
	return own, true
}
