package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// leastRow is the number of elements below which the rows of a reduction are not reduced on their own.
const leastRow = 8

// splitReductions divides reductions over the innermost dimensions and others, or over long rows, in two: the first one
// reduces rows, in the region that computes them, and the second one their results. A sum over all but a middle
// dimension would otherwise be read across the order in memory, and a sum of everything would be read from memory.
func splitReductions(g *Graph) {
	var nodes []*Node
	for _, n := range g.Nodes {
		if first := splitReduction(n); first != nil {
			nodes = append(nodes, first)
		}
		nodes = append(nodes, n)
	}
	g.Nodes = nodes
}

// splitReduction returns the node that reduces rows, of whose results n becomes the reduction, or nil.
func splitReduction(n *Node) *Node {
	if !n.is(Reduction) || n.Out[0].Type == onnxpb.TensorProto_BFLOAT16 {
		return nil
	}
	x := n.In[0]
	shape := x.Shape()
	begin, tail := len(shape), 1
	for begin > 0 && (shape[begin-1] == 1 || slices.Contains(n.Axes, begin-1)) {
		begin--
		tail *= shape[begin]
	}
	var others []int
	for _, a := range n.Axes {
		if a < begin && shape[a] > 1 {
			others = append(others, a)
		}
	}
	row := rowOf(shape[begin:])
	if len(others) == 0 && row == tail || row < leastRow {
		return nil
	}
	to := append(slices.Clone(shape[:begin]), tail/row, row)
	rows := x.view(View{Op: Reshape, To: to})
	first := &Node{Kind: Reduction, Op: n.Op, In: []Operand{rows}, Axes: []int{len(to) - 1}}
	t := first.makes(n.Out[0].Name+"/rows", n.Out[0].Type, append(slices.Clone(to[:begin+1]), 1))
	rest := append(slices.Clone(shape[:begin]), tail/row)
	for len(rest) < len(shape) {
		rest = append(rest, 1)
	}
	n.In[0] = Operand{Tensor: t}.view(View{Op: Reshape, To: rest})
	n.Axes = others
	if tail > row {
		n.Axes = append(n.Axes, begin)
	}
	return first
}

// rowOf returns the number of elements of a row: of the innermost dimensions, as far as they are whole or divided
// without a rest, at most maxRow.
func rowOf(shape []int) int {
	row := 1
	for _, d := range slices.Backward(shape) {
		if row*d <= maxRow {
			row *= d
			continue
		}
		for k := maxRow / row; k > 1; k-- {
			if d%k == 0 {
				return row * k
			}
		}
		return row
	}
	return row
}
