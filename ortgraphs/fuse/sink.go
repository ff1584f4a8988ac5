package fuse

import (
	"fmt"
	"slices"
)

// sinkBiases moves the addition of a bias after the slices of its result: Slice(x + b) = Slice(x) + Slice(b). The
// result of a merged product of queries, keys and values is then read by those who need a part of it, and not written
// again with its bias.
func sinkBiases(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	var nodes []*Node
	for _, n := range g.Nodes {
		if sunk := sink(n, uses, outputs); sunk != nil {
			nodes = append(nodes, sunk...)
			continue
		}
		nodes = append(nodes, n)
	}
	g.Nodes = nodes
}

// sink returns the additions that take the place of one, or nil.
func sink(n *Node, uses map[*Tensor][]use, outputs map[*Tensor]bool) []*Node {
	if !n.is(Elementwise) || n.Op != "Add" || outputs[n.Out[0]] {
		return nil
	}
	sum := n.Out[0]
	x, bias := n.In[0], n.In[1]
	if len(x.Shape()) == 1 {
		x, bias = bias, x
	}
	rank := len(sum.Shape)
	if rank < 2 || !slices.Equal(x.Shape(), sum.Shape) || !slices.Equal(bias.Shape(), sum.Shape[rank-1:]) {
		return nil
	}
	for _, u := range uses[sum] {
		if u.node.work != nil || sliceOfColumns(u.node.In[u.operand].Views, sum.Shape) < 0 {
			return nil
		}
	}
	var added []*Node
	for _, u := range uses[sum] {
		o := &u.node.In[u.operand]
		at := sliceOfColumns(o.Views, sum.Shape)
		part := x
		for _, v := range o.Views[:at+1] {
			part = part.view(v)
		}
		v := o.Views[at]
		i := slices.IndexFunc(added, func(m *Node) bool { return sameViews(m.In[0].Views, part.Views) })
		if i < 0 {
			m := &Node{Kind: Elementwise, Op: "Add", In: []Operand{part, cut(bias, 0, v.Start, v.Step,
				v.To[len(v.To)-1])}}
			m.makes(fmt.Sprintf("%s/part%d", sum.Name, len(added)), sum.Type, v.To)
			added, i = append(added, m), len(added)
		}
		*o = Operand{added[i].Out[0], slices.Clone(o.Views[at+1:])}
	}
	return added
}

// sliceOfColumns returns the position of a slice of the last dimension, before which nothing changes that dimension, or
// -1.
func sliceOfColumns(views []View, shape []int) int {
	columns := shape[len(shape)-1]
	for i, v := range views {
		switch {
		case v.Op == Slice && v.Axis == len(v.From)-1 && v.From[v.Axis] == columns:
			return i
		case v.Op != Reshape || len(v.To) == 0 || v.To[len(v.To)-1] != columns:
			return -1
		}
	}
	return -1
}

func sameViews(a, b []View) bool {
	return slices.EqualFunc(a, b, func(v, w View) bool {
		return v.Op == w.Op && v.Axis == w.Axis && v.Start == w.Start && v.Step == w.Step && slices.Equal(v.To, w.To) &&
			slices.Equal(v.Perm, w.Perm)
	})
}
