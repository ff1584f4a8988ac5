package fuse

import "fmt"

// recompute gives each reader its own copy of what costs no bytes to compute again: an elementwise node of which at
// most one operand is large, and that one is in memory in any case, because a product or an opaque node wrote it or it
// is an input. Biases, scales, casts and masks are of this kind.
func recompute(g *Graph) {
	r := &recomputation{uses: g.uses(), known: map[*Node]bool{}}
	var nodes []*Node
	for _, n := range g.Nodes {
		nodes = append(nodes, n)
		if !r.cheap(n, 0) {
			continue
		}
		for _, u := range r.uses[n.Out[0]] {
			if u.node.fusible() && u.node.Kind != Join && !r.cheap(u.node, 0) {
				r.added = nil
				u.node.In[u.operand].Tensor = r.copy(n)
				nodes = append(nodes, r.added...)
			}
		}
	}
	g.Nodes = nodes
	g.Nodes = reachable(g)
}

type recomputation struct {
	uses   map[*Tensor][]use
	known  map[*Node]bool
	added  []*Node
	copies int
}

// inMemory reports whether the tensor is written in any case.
func inMemory(t *Tensor) bool {
	return t.From == nil || t.From.work != nil || t.From.Kind == Product || t.From.Kind == Opaque
}

// maxRecomputed is how many nodes one after another are computed again.
const maxRecomputed = 4

func (r *recomputation) cheap(n *Node, depth int) bool {
	if !n.is(Elementwise) || n.Op == "Copy" || n.longRemainder() || depth == maxRecomputed {
		return false
	}
	if depth == 0 {
		if c, ok := r.known[n]; ok {
			return c
		}
	}
	large, result := 0, true
	elements := n.Out[0].Elements()
	for _, o := range n.In {
		big := o.Tensor.Elements()*smallPart > elements
		stored := inMemory(o.Tensor)
		again := !stored && r.cheap(o.Tensor.From, depth+1)
		if !stored && !again {
			result = false
			break
		}
		if big {
			large++
		}
	}
	result = result && large <= 1
	if depth == 0 {
		r.known[n] = result
	}
	return result
}

// copy computes the node's result again, with what it needs.
func (r *recomputation) copy(n *Node) *Tensor {
	r.copies++
	c := n.again()
	for i, o := range c.In {
		if !inMemory(o.Tensor) && r.cheap(o.Tensor.From, 0) {
			c.In[i].Tensor = r.copy(o.Tensor.From)
		}
	}
	c.Out[0].Name = fmt.Sprintf("%s/again%d", n.Out[0].Name, r.copies)
	r.added = append(r.added, c)
	return c.Out[0]
}
