package fuse

import "slices"

// sinkTransposes computes nodes in the order in which most of their operands are in memory, and shows their results
// transposed: f(T(x)) = T(f(x)). A model may transpose the results of products, as one of convolutions does, and again
// before the next product. Then nothing is left between them that reads along one dimension and writes along another.
func sinkTransposes(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	for _, n := range g.Nodes {
		if !n.fusible() || n.Op == "Copy" {
			continue
		}
		n.refine(uses)
		order := n.order()
		if order == nil || !movable(n, order, uses, outputs) {
			continue
		}
		n.reorder(order)
		t := n.Out[0]
		shape := t.Shape
		t.Shape = permuted(shape, inverse(order))
		for _, u := range uses[t] {
			o := &u.node.In[u.operand]
			*o = Operand{Tensor: t}.moved(order).through(o.Views)
		}
	}
}

// movable reports whether all readers of the node's result can read it in another order.
func movable(n *Node, order []int, uses map[*Tensor][]use, outputs map[*Tensor]bool) bool {
	t := n.Out[0]
	if onlyOnesMove(t.Shape, inverse(order)) {
		return !slices.ContainsFunc(uses[t], func(u use) bool { return u.node.work != nil })
	}
	return !outputs[t] &&
		!slices.ContainsFunc(uses[t], func(u use) bool { return u.node.work != nil || u.node.Kind == Opaque })
}

// order returns how the domain of the node shows that in which most bytes of its operands are in memory: dimension i is
// dimension order[i] there. It is nil if they are the same.
func (n *Node) order() []int {
	domain := n.domain()
	bytes := map[string]int{}
	var best []int
	for _, o := range n.In {
		if !slices.Equal(o.Shape(), domain) && n.Kind != Join || o.Tensor.Constant || o.Tensor.repeats() {
			continue
		}
		_, perm, ok := o.transposed()
		if !ok {
			continue
		}
		key := string(runes(perm))
		bytes[key] += o.Tensor.Bytes()
		if best == nil || bytes[key] > bytes[string(runes(best))] {
			best = perm
		}
	}
	if best == nil || slices.IsSorted(best) || onlyOnesMove(domain, inverse(best)) {
		return nil
	}
	return best
}

// repeats reports whether a tensor only repeats what is much smaller, such as a gradient of a mean or a mask. A kernel
// computes it where it needs it, so it is in no order.
func (t *Tensor) repeats() bool { return t.repeatsWithin(repeatedNodes) }

const (
	// repeatTimes is how often a tensor at least repeats what it is computed from, repeatedNodes by how many nodes one
	// after another.
	repeatTimes   = 8
	repeatedNodes = 4
)

func (t *Tensor) repeatsWithin(nodes int) bool {
	n := t.From
	return n != nil && n.Kind == Elementwise && nodes > 0 && !slices.ContainsFunc(n.In, func(o Operand) bool {
		return o.Tensor.Elements()*repeatTimes > t.Elements() && !o.Tensor.repeatsWithin(nodes-1)
	})
}

func runes(list []int) (text []rune) {
	for _, x := range list {
		text = append(text, rune(x))
	}
	return text
}

// reorder lets the node compute in another order of dimensions.
func (n *Node) reorder(order []int) {
	rank := len(order)
	for i, o := range n.In {
		if len(o.Shape()) == 0 {
			continue
		}
		if added := rank - len(o.Shape()); added > 0 {
			to := o.Shape()
			for range added {
				to = slices.Insert(slices.Clone(to), 0, 1)
			}
			o = o.view(View{Op: Reshape, To: to})
		}
		if plain, perm, ok := o.transposed(); ok && slices.Equal(perm, order) {
			n.In[i] = plain
			continue
		}
		n.In[i] = o.moved(inverse(order))
	}
	n.Axes = slices.Clone(n.Axes)
	for i, a := range n.Axes {
		n.Axes[i] = order[a]
	}
	slices.Sort(n.Axes)
	if n.Pads != nil {
		n.Pads = permuted(n.Pads, inverse(order))
	}
}

// moved shows the operand with dimension perm[i] as dimension i.
func (o Operand) moved(perm []int) Operand {
	to := permuted(o.Shape(), perm)
	if onlyOnesMove(o.Shape(), perm) {
		return o.view(View{Op: Reshape, To: to})
	}
	return o.view(View{Op: Transpose, Perm: perm, To: to})
}

// transposed returns the operand as a transpose of another one, if its views allow that: its dimension i is dimension
// perm[i] of plain.
func (o Operand) transposed() (plain Operand, perm []int, ok bool) {
	plain = Operand{Tensor: o.Tensor}
	for i := range o.Tensor.Shape {
		perm = append(perm, i)
	}
	for _, v := range o.Views {
		switch v.Op {
		case Transpose:
			perm = permuted(perm, v.Perm)
		case Slice:
			axis := perm[v.Axis]
			to := slices.Clone(plain.Shape())
			to[axis] = v.To[v.Axis]
			plain = plain.view(View{Op: Slice, Axis: axis, Start: v.Start, Step: v.Step, To: to})
		case Expand:
			added := len(v.To) - len(v.From)
			all := make([]int, 0, len(v.To))
			for i := range added {
				all = append(all, i)
			}
			for _, p := range perm {
				all = append(all, p+added)
			}
			perm = all
			plain = plain.view(View{Op: Expand, To: permuted(v.To, inverse(perm))})
		case Reshape:
			if plain, perm, ok = plain.reshapedUnder(perm, v); !ok {
				return o, nil, false
			}
		}
	}
	return plain, perm, true
}

// reshapedUnder is a reshape of the transposed operand as a reshape of the operand. It divides and joins dimensions
// that are neighbours in both.
func (o Operand) reshapedUnder(perm []int, v View) (Operand, []int, bool) {
	type part struct{ at, first, count int } // position in the operand, and dimensions of v.To
	var parts []part
	i, j := 0, 0
	for i < len(v.From) || j < len(v.To) {
		p := part{at: len(perm), first: j}
		from, to, last := 1, 1, -1
		for begin := true; begin || from != to; begin = false {
			if from <= to && i < len(v.From) {
				if at := perm[i]; v.From[i] > 1 {
					if last >= 0 && !followedBy(o.Shape(), last, at) {
						return o, nil, false
					}
					last, p.at = at, min(p.at, at)
				}
				from *= v.From[i]
				i++
			} else if j < len(v.To) {
				to *= v.To[j]
				j++
			} else {
				return o, nil, false
			}
		}
		for i < len(v.From) && v.From[i] == 1 {
			i++
		}
		for j < len(v.To) && v.To[j] == 1 {
			j++
		}
		p.count = j - p.first
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.at - b.at })
	to, order := []int{}, make([]int, len(v.To))
	for _, p := range parts {
		for k := range p.count {
			order[p.first+k] = len(to)
			to = append(to, v.To[p.first+k])
		}
	}
	return o.view(View{Op: Reshape, To: to}), order, true
}

// followedBy reports whether only dimensions of size 1 are between two dimensions.
func followedBy(shape []int, a, b int) bool {
	return a < b && product(shape[a+1:b]) == 1
}

// permuted returns the list with element perm[i] as element i.
func permuted(list, perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[i] = list[p]
	}
	return out
}

func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[p] = i
	}
	return out
}

// onlyOnesMove reports whether a transpose keeps the order of the dimensions larger than 1.
func onlyOnesMove(shape, perm []int) bool {
	last := -1
	for _, p := range perm {
		if shape[p] == 1 {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}
