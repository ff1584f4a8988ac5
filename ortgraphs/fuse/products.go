package fuse

import (
	"fmt"
	"slices"
)

// use is an operand of a node.
type use struct {
	node    *Node
	operand int
}

// uses returns the operands that read each tensor.
func (g *Graph) uses() map[*Tensor][]use {
	all := map[*Tensor][]use{}
	for _, n := range g.Nodes {
		for i, o := range n.In {
			if o.Tensor != nil {
				all[o.Tensor] = append(all[o.Tensor], use{n, i})
			}
		}
	}
	return all
}

func (g *Graph) outputs() map[*Tensor]bool {
	out := map[*Tensor]bool{}
	for _, o := range g.Outputs {
		out[o.Tensor] = true
	}
	return out
}

// replace makes the readers of a tensor read another one.
func (g *Graph) replace(old, by *Tensor, uses map[*Tensor][]use) {
	for _, u := range uses[old] {
		u.node.In[u.operand].Tensor = by
	}
	for i, o := range g.Outputs {
		if o.Tensor == old {
			g.Outputs[i].Tensor = by
		}
	}
}

// insert puts new nodes before those that follow them.
func (g *Graph) insert(before map[*Node][]*Node) {
	var nodes []*Node
	for _, n := range g.Nodes {
		nodes = append(append(nodes, before[n]...), n)
	}
	g.Nodes = nodes
}

// layoutProducts chooses the layouts of products, so that no operand is transposed in memory only for its product: a
// library takes the last two dimensions of an operand in either order. It takes those of a convolution in one order.
func layoutProducts(g *Graph) {
	copies := map[string]*Tensor{}
	var nodes []*Node
	for _, n := range g.Nodes {
		if n.is(Product) {
			for i := range n.Transposed {
				if c := layoutOperand(n, i, copies); c != nil {
					nodes = append(nodes, c)
				}
			}
		}
		if n.Kind == Convolved {
			for i := range n.In {
				if c := layoutInOrder(n, i, copies); c != nil {
					nodes = append(nodes, c)
				}
			}
			nodes = append(nodes, n.Convolution.expand(n)...)
			continue
		}
		nodes = append(nodes, n)
	}
	g.Nodes = nodes
}

// layoutInOrder replaces the views of an operand by a reshape, or by a copy, which it returns if it is a new one.
func layoutInOrder(n *Node, i int, copies map[string]*Tensor) *Node {
	o := n.In[i]
	if o.Reshaped() {
		return nil
	}
	key := ""
	if order, ok := orderOf(o); ok {
		if order.asIs() {
			n.In[i] = Operand{Tensor: o.Tensor}.view(View{Op: Reshape, To: o.Shape()})
			return nil
		}
		key = fmt.Sprintf("%p %v", o.Tensor, order.axes.strides(order.memory, order.flat))
	}
	return n.readCopy(i, o, key, copies)
}

// readCopy lets a node read a copy of an operand, which it returns if it is a new one. Operands with one key share a
// copy. With the key "", the tensor and the views have to be the same.
func (n *Node) readCopy(i int, o Operand, key string, copies map[string]*Tensor) *Node {
	if key == "" {
		views := o.Views
		for len(views) > 0 && views[len(views)-1].Op == Reshape {
			views = views[:len(views)-1]
		}
		key = fmt.Sprintf("%p %v", o.Tensor, views)
	}
	if t := copies[key]; t != nil {
		n.In[i] = Operand{Tensor: t}.view(View{Op: Reshape, To: o.Shape()})
		return nil
	}
	c := o.copied("/copy")
	copies[key] = c.Out[0]
	n.In[i] = Operand{Tensor: c.Out[0]}
	return c
}

// swapResults exchanges the last two dimensions of results that all readers want so: (AB)' = B'A'.
func swapResults(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	for _, n := range g.Nodes {
		t := n.Out[0]
		if !n.is(Product) || outputs[t] || len(t.Shape) < 3 || len(uses[t]) == 0 {
			continue
		}
		if slices.ContainsFunc(uses[t], func(u use) bool { return !wantsSwapped(t, u.node.In[u.operand].Views) }) {
			continue
		}
		swap := swapLast(t.Shape)
		t.Name += "/swapped"
		t.Shape = swap.To
		back := swapLast(t.Shape)
		for _, u := range uses[t] {
			o := &u.node.In[u.operand]
			o.Views = append([]View{back}, o.Views...)
		}
		n.In[0], n.In[1] = n.In[1], n.In[0]
		n.Transposed = [2]bool{!n.Transposed[1], !n.Transposed[0]}
	}
}

// wantsSwapped reports whether the last dimension after the views is the one before the last of the tensor.
func wantsSwapped(t *Tensor, views []View) bool {
	a := newAxes()
	whole := a.whole(t.Shape)
	l, ok := a.through(whole, views)
	if !ok {
		return false
	}
	flat, wanted := a.flat(l), a.expand(whole[len(whole)-2])
	return len(flat) > 0 && len(wanted) > 0 && flat[len(flat)-1] == wanted[len(wanted)-1]
}

// swapLast is the view that exchanges the last two dimensions.
func swapLast(shape []int) View {
	rank := len(shape)
	v := View{Op: Transpose, From: shape, To: slices.Clone(shape)}
	for i := range rank {
		v.Perm = append(v.Perm, i)
	}
	v.Perm[rank-1], v.Perm[rank-2] = rank-2, rank-1
	v.To[rank-1], v.To[rank-2] = shape[rank-2], shape[rank-1]
	return v
}

// layoutOperand replaces the views of a product's operand by a reshape and Transposed, or by a copy, which it returns
// if it is a new one.
func layoutOperand(n *Node, i int, copies map[string]*Tensor) *Node {
	o := n.In[i]
	if o.Reshaped() {
		return nil
	}
	key := ""
	if order, ok := orderOf(o); ok {
		swap := swapLast(o.Shape())
		flat := order.flat
		switch {
		case order.asIs():
			n.In[i] = Operand{Tensor: o.Tensor}.view(View{Op: Reshape, To: o.Shape()})
			return nil
		case order.swapped():
			n.In[i] = Operand{Tensor: o.Tensor}.view(View{Op: Reshape, To: swap.To})
			n.Transposed[i] = !n.Transposed[i]
			return nil
		case order.rows: // a copy in this order moves whole rows
			o, flat = o.view(swap), order.turned
			n.Transposed[i] = !n.Transposed[i]
		}
		key = fmt.Sprintf("%p %v", o.Tensor, order.axes.strides(order.memory, flat))
	}
	return n.readCopy(i, o, key, copies)
}

// copied is a node that writes the operand to memory in its order. The name of its result is the tensor's with an
// ending.
func (o Operand) copied(ending string) *Node {
	c := &Node{Kind: Elementwise, Op: "Copy", In: []Operand{o}}
	c.makes(o.Tensor.Name+ending, o.Tensor.Type, o.Shape())
	return c
}

// order is how the elements of a product's operand lie in memory, by the atoms of axes.
type order struct {
	axes *axes
	// memory is the order in memory, flat that of the operand, turned that with its last two dimensions exchanged.
	memory, flat, turned []int
	rows                 bool // the dimension before the last ends with what is innermost in memory
}

// orderOf returns the order of an operand, or false if it repeats elements.
func orderOf(o Operand) (order, bool) {
	a := newAxes()
	whole := a.whole(o.Tensor.Shape)
	l, ok := a.through(whole, o.Views)
	if !ok || !a.covers(l, o.Shape()) {
		return order{}, false
	}
	swapped := slices.Clone(l)
	rank := len(l)
	swapped[rank-1], swapped[rank-2] = l[rank-2], l[rank-1]
	r := order{axes: a, memory: a.flat(whole), flat: a.flat(l), turned: a.flat(swapped)}
	last := a.expand(l[rank-2])
	r.rows = len(last) > 0 && last[len(last)-1] == r.memory[len(r.memory)-1]
	return r, true
}

// A library takes an operand that is in memory as it is, or with its last two dimensions exchanged.
func (r order) asIs() bool    { return slices.Equal(r.flat, r.memory) }
func (r order) swapped() bool { return slices.Equal(r.turned, r.memory) }

// needsCopy reports whether a product can take the operand only from a copy.
func (o Operand) needsCopy() bool {
	if o.Reshaped() {
		return false
	}
	r, ok := orderOf(o)
	return !ok || !r.asIs() && !r.swapped()
}

// covers reports whether no dimension is repeated.
func (a *axes) covers(l layout, shape []int) bool {
	for i, d := range shape {
		if a.elements(l[i]) != d {
			return false
		}
	}
	return true
}

// strides describes the order of atoms by sizes and strides in memory, where neighbours are merged.
func (a *axes) strides(memory, order []int) [][2]int {
	stride := map[int]int{}
	step := 1
	for _, x := range slices.Backward(memory) {
		stride[x] = step
		step *= a.size[x-1]
	}
	var out [][2]int
	for _, x := range order {
		size := a.size[x-1]
		if n := len(out); n > 0 && out[n-1][1] == stride[x]*size {
			out[n-1] = [2]int{out[n-1][0] * size, stride[x]}
			continue
		}
		out = append(out, [2]int{size, stride[x]})
	}
	return out
}
