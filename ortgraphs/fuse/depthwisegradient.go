package fuse

import (
	"fmt"
	"slices"
)

// gradients puts a node in place of the sums that are the gradient of the weights of one convolution.
func (f *depthwiseFinder) gradients(g *Graph) {
	type pair struct {
		y, x   string
		tensor [2]*Tensor
	}
	var pairs []pair
	found := map[pair]*tapSum{}
	for _, n := range g.Nodes {
		if !n.is(Reduction) || n.Op != "sum" || n.Out[0].Type != f32 || f.outputs[n.Out[0]] || !n.In[0].Plain() {
			continue
		}
		m := n.In[0].Tensor.From
		if m == nil || !m.is(Elementwise) || m.Op != "Mul" || len(f.uses[m.Out[0]]) != 1 {
			continue
		}
		for i, y := range m.In {
			o := m.In[1-i]
			if !slices.Equal(y.Shape(), m.Out[0].Shape) || !slices.Equal(o.Shape(), m.Out[0].Shape) {
				continue
			}
			x, shift, _ := unshifted(o)
			key := pair{fmt.Sprint(y.Views), fmt.Sprint(x.Views), [2]*Tensor{y.Tensor, x.Tensor}}
			if found[key] == nil {
				found[key] = &tapSum{x: x}
				pairs = append(pairs, key)
			}
			found[key].taps = append(found[key].taps, depthwiseTap{shift: shift, weight: y, sum: n})
		}
	}
	for _, key := range pairs {
		f.rewriteGradient(found[key])
	}
}

// rewriteGradient puts a node in place of sums, if they are the gradient of the weights of a depthwise convolution.
func (f *depthwiseFinder) rewriteGradient(s *tapSum) {
	if len(s.taps) < leastTaps {
		return
	}
	d := &Depthwise{OfWeights: true, Type: f32}
	axes, order, ok := d.grid(s.taps)
	if !ok || len(s.taps) > maxTaps {
		return
	}
	y, first := s.taps[0].weight, s.taps[0].sum
	channel, ok := channelOf(first.Out[0].Shape, len(y.Shape()))
	if !ok || channel < 0 {
		return
	}
	for _, t := range s.taps {
		if !slices.Equal(t.sum.Out[0].Shape, first.Out[0].Shape) || len(f.uses[t.sum.Out[0]]) == 0 {
			return
		}
	}
	perm, ok := d.layout(s.x.Shape(), y.Shape(), axes, channel)
	if !ok {
		return
	}
	dw := f.add(first, d, first.Out[0].Name, laid(y, perm, d.ResultSize), laid(s.x, perm, d.Size))
	f.made = append(f.made, dw.Tensor)
	for k, i := range order {
		t := s.taps[i].sum.Out[0]
		by := cut(dw, 1, k, 1, 1).view(View{Op: Reshape, To: t.Shape})
		for _, u := range f.uses[t] {
			o := &u.node.In[u.operand]
			*o = by.through(o.Views)
		}
		f.uses[dw.Tensor], f.uses[t] = append(f.uses[dw.Tensor], f.uses[t]...), nil
	}
}

// joined leaves out the Concat of the gradients of single weights: the kernel writes them in that order.
func (f *depthwiseFinder) joined(g *Graph) {
	for _, dw := range f.made {
		for _, u := range f.uses[dw] {
			n := u.node
			if u.operand != 0 || !n.is(Join) || n.Op != "Concat" || n.Out[0].Elements() != dw.Elements() ||
				!joinsInOrder(n, dw) {
				continue
			}
			t := n.Out[0]
			by := Operand{Tensor: dw}.view(View{Op: Reshape, To: t.Shape})
			show(t, by, 0, f.uses)
			g.replace(t, dw, map[*Tensor][]use{})
			break
		}
	}
}

// joinsInOrder reports whether a Concat joins the columns of a matrix again.
func joinsInOrder(n *Node, dw *Tensor) bool {
	rows, columns, axis := dw.Shape[0], dw.Shape[1], n.Axes[0]
	shape := n.Out[0].Shape
	if len(n.In) != columns || shape[axis] != columns || product(shape[:axis]) != rows {
		return false
	}
	for i, o := range n.In {
		if o.Tensor != dw || product(o.Shape()) != rows {
			return false
		}
		for c := range rows {
			index, at := make([]int, len(shape)), c
			for j := axis - 1; j >= 0; j-- {
				index[j] = at % shape[j]
				at /= shape[j]
			}
			if o.placeOf(index) != c*columns+i {
				return false
			}
		}
	}
	return true
}
