package fuse

import "slices"

// refine divides a dimension of a node that a reshape has joined from several. It does so if these are not neighbours
// in memory, as after a transposition of groups of channels and the time. Then the node can compute in the order of
// memory.
func (n *Node) refine(uses map[*Tensor][]use) {
	if n.Kind == Join || n.Kind == Cumulation ||
		slices.ContainsFunc(uses[n.Out[0]], func(u use) bool { return u.node.work != nil }) {
		return
	}
	domain := n.domain()
	for _, o := range n.In {
		last := len(o.Views) - 1
		if last < 0 || o.Views[last].Op != Reshape || !slices.Equal(o.Shape(), domain) {
			continue
		}
		_, perm, ok := Operand{o.Tensor, o.Views[:last]}.transposed()
		if _, _, whole := o.transposed(); !ok || slices.IsSorted(perm) || whole {
			continue
		}
		if fine := refined(o.Views[last].From, domain); len(fine) > len(beyondOne(domain)) {
			n.divide(fine, uses)
			return
		}
	}
}

// divide lets the node compute over dimensions of which those of its domain are products.
func (n *Node) divide(fine []int, uses map[*Tensor][]use) {
	domain := n.domain()
	parts := make([][]int, len(domain))
	at := 0
	for i, d := range domain {
		for size := 1; size < d; at++ {
			parts[i] = append(parts[i], fine[at])
			size *= fine[at]
		}
		if d == 1 {
			parts[i] = []int{1}
		}
	}
	shape := func(of []int) (to []int) { // of dimensions that are those of the domain, or 1
		for i, d := range of {
			for _, part := range parts[i+len(domain)-len(of)] {
				if d == 1 {
					part = 1
				}
				to = append(to, part)
			}
		}
		return to
	}
	for i, o := range n.In {
		n.In[i] = o.view(View{Op: Reshape, To: shape(o.Shape())})
	}
	var axes []int
	first := 0
	for i := range domain {
		for k := range parts[i] {
			if slices.Contains(n.Axes, i) {
				axes = append(axes, first+k)
			}
		}
		first += len(parts[i])
	}
	n.Axes = axes
	t := n.Out[0]
	t.reshape(shape(t.Shape), uses[t])
}
