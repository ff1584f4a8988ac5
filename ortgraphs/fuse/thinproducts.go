package fuse

import (
	"fmt"
	"slices"
)

const (
	// thinSide is the largest number of results along the short side of a thin product, each of which is a sum of its
	// own, and wideSide along the other.
	thinSide, wideSide = 12, 512
	// thinTerms is the number of terms from which on a library needs longer for a thin product than reading takes.
	thinTerms = 1 << 14
)

// sumThinProducts computes products of few results along one side as sums: those of a convolution that reads or makes a
// single channel, and the gradients of its weights. A library loads operands slowly whose rows are no multiple of 16
// bytes, and it fills up the short side of the result to a tile. As sums, one kernel reads each operand once, and
// windows are computed where they are read.
func sumThinProducts(g *Graph) {
	uses := g.uses()
	l := &lowering{graph: &Graph{}}
	for _, n := range g.Nodes {
		t := n.Out[0]
		var y Operand
		if wide, thin, turned, ok := thinProduct(n); ok {
			if y = l.thinSums(t, wide, thin, 0); !turned {
				y = y.moved([]int{1, 0})
			}
		} else if onlyWindows(n, uses) {
			windows, weights := n.In[0], n.In[1]
			if !n.Transposed[1] {
				weights = weights.moved([]int{1, 0})
			}
			y = l.thinSums(t, windows, weights, 1)
		} else {
			l.graph.Nodes = append(l.graph.Nodes, n)
			continue
		}
		show(t, y, 0, uses)
		for i, o := range g.Outputs {
			if o.Tensor == t {
				g.Outputs[i].Tensor = l.stored(y).Tensor
			}
		}
	}
	g.Nodes = l.graph.Nodes
}

// thinProduct returns the operands of a thin product with the terms as their first dimension. turned says that the
// results along the thin side are the rows.
func thinProduct(n *Node) (wide, thin Operand, turned, ok bool) {
	if !n.is(Product) || n.adds() || len(n.Out[0].Shape) != 2 || !isFloat(n.Out[0].Type) || n.inner() < thinTerms {
		return wide, thin, false, false
	}
	a, aFirst := terms(n, 0, true)
	b, bFirst := terms(n, 1, false)
	rows, columns := n.Out[0].Shape[0], n.Out[0].Shape[1]
	if !aFirst || !bFirst {
		return wide, thin, false, false
	}
	if rows < columns {
		a, b, rows, columns, turned = b, a, columns, rows, true
	}
	ok = (columns == 1 || columns%8 != 0) && columns <= thinSide && rows%8 == 0 && rows <= wideSide
	return a, b, turned, ok
}

// terms returns an operand of a product with the terms as its first dimension. It is false if the terms are the last
// dimension in memory.
func terms(n *Node, i int, last bool) (Operand, bool) {
	o, transposed := n.matrix(i)
	if shape := o.Shape(); len(shape) != 2 {
		return o, false
	} else if transposed == last {
		return o, true
	} else if min(shape[0], shape[1]) == 1 {
		return o.view(View{Op: Reshape, To: []int{shape[1], shape[0]}}), true
	}
	return o, false
}

// onlyWindows reports whether a product has few columns and sums along rows of windows, which only products that become
// sums read: they are then in no memory, unless they are an output of the graph.
func onlyWindows(n *Node, uses map[*Tensor][]use) bool {
	if !n.is(Product) || n.adds() || len(n.Out[0].Shape) != 2 || !isFloat(n.Out[0].Type) || n.Transposed[0] {
		return false
	}
	windows, rows, columns := n.In[0], n.Out[0].Shape[0], n.Out[0].Shape[1]
	if columns > thinSide || columns > 1 && columns%8 == 0 || rows < thinTerms || n.inner() > maxRow ||
		!windows.Reshaped() || windows.Tensor.From == nil {
		return false
	}
	_, _, found := windowsOf(windows.Tensor.From)
	return found && !slices.ContainsFunc(uses[windows.Tensor], func(u use) bool {
		_, _, _, sums := thinProduct(u.node)
		return u.node != n && !sums
	})
}

// thinSums multiplies the wide operand with each part of the thin one, in f32, and adds the products up along a
// dimension of both. It returns the sums of a part as a row, if that dimension is the first, or as a column.
func (l *lowering) thinSums(t *Tensor, wide, thin Operand, along int) Operand {
	exact := func(o Operand, name string) Operand {
		if o.Tensor.Type == f32 {
			return o
		}
		return l.elementwise("Cast", t.Name+"/"+name, f32, o.Shape(), o)
	}
	wide = exact(wide, "wide")
	parts := 1 - along // the dimension along which the thin operand has its parts, and the sums of a part lie
	count, rows := thin.Shape()[parts], wide.Shape()[parts]
	join := &Node{Kind: Join, Op: "Concat", Axes: []int{along}}
	for i := range count {
		one := exact(cut(thin, parts, i, 1, 1), fmt.Sprintf("thin%d", i))
		terms := l.elementwise("Mul", fmt.Sprintf("%s/terms%d", t.Name, i), f32, wide.Shape(), wide, one)
		join.In = append(join.In, l.reduce("sum", fmt.Sprintf("%s/sum%d", t.Name, i), terms, along))
	}
	y := join.In[0]
	if count > 1 {
		shape := []int{count, rows}
		if along == 1 {
			shape = []int{rows, count}
		}
		y = l.add(join, t.Name+"/joined", f32, shape)
	}
	if t.Type != f32 {
		y = l.elementwise("Cast", t.Name+"/sums", t.Type, y.Shape(), y)
	}
	return y
}
