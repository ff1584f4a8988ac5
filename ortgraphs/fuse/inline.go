package fuse

import (
	"fmt"
	"slices"
)

// inlineOperands lets nodes compute an operand at the places where they read it, if these are not the places of a
// region: the parts of a Concat, what a Pad surrounds, and slices. A convolution as matrix products is of this kind:
// the copies that it joins are slices of one padded tensor. A node is inlined if that costs no bytes: it reads one
// large tensor, which is in memory in any case, or instead of the result.
func inlineOperands(g *Graph) {
	in := &inlining{uses: g.uses(), outputs: g.outputs(), known: map[*Node]bool{}}
	var nodes []*Node
	for _, n := range g.Nodes {
		in.added = nil
		if n.fusible() {
			for i, o := range n.In {
				if elsewhere(n, o) && in.free(o.Tensor.From, 0) {
					n.In[i].Tensor = in.copy(o.Tensor.From, 0)
				}
			}
		}
		nodes = append(append(nodes, in.added...), n)
	}
	g.Nodes = nodes
	g.Nodes = reachable(g)
}

// elsewhere reports whether a node reads an operand at other places than its own.
func elsewhere(n *Node, o Operand) bool {
	return n.Kind == Join || slices.ContainsFunc(o.Views, func(v View) bool { return v.Op == Slice })
}

type inlining struct {
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	known   map[*Node]bool
	added   []*Node
	copies  int
}

// divides reports whether a node divides integers: where it is read under a condition, its operands may be zero.
func divides(n *Node) bool {
	return (n.Op == "Div" || n.Op == "Mod") && !isFloating(n.Out[0].Type)
}

// free reports whether it costs no bytes to compute a node where it is read.
func (in *inlining) free(n *Node, depth int) bool {
	if n == nil || !n.fusible() || n.Kind == Reduction || n.Kind == Cumulation || n.Op == "Copy" ||
		depth+n.height() > maxRecomputed || divides(n) {
		return false
	}
	if n.Inline {
		return true
	}
	if f, ok := in.known[n]; ok && depth == 0 {
		return f
	}
	t := n.Out[0]
	only := !in.outputs[t] && !slices.ContainsFunc(in.uses[t], func(u use) bool {
		return !u.node.fusible() || !elsewhere(u.node, u.node.In[u.operand])
	})
	large, bytes, result := 0, 0, true
	for _, o := range n.In {
		if o.Tensor.Elements()*8 <= t.Elements() {
			continue
		}
		large++
		if !inMemory(o.Tensor) && !in.free(o.Tensor.From, depth+1) {
			bytes += o.Tensor.Bytes()
			result = result && only
		}
	}
	result = result && bytes <= t.Bytes() && (large <= 1 || n.Kind == Join)
	if depth == 0 {
		in.known[n] = result
	}
	return result
}

// height is the number of nodes that are computed inline for a node, one after another, and the node itself.
func (n *Node) height() int {
	most := 0
	for _, o := range n.In {
		if from := o.Tensor.From; from != nil && from.Inline {
			most = max(most, from.height())
		}
	}
	return most + 1
}

// copy computes a node where one reader needs it.
func (in *inlining) copy(n *Node, depth int) *Tensor {
	in.copies++
	c := n.again()
	c.Inline = true
	for i, o := range c.In {
		if from := o.Tensor.From; !inMemory(o.Tensor) && (from.Inline || in.free(from, depth+1)) {
			c.In[i].Tensor = in.copy(o.Tensor.From, depth+1)
		}
	}
	c.Out[0].Name = fmt.Sprintf("%s/at%d", n.Out[0].Name, in.copies)
	in.added = append(in.added, c)
	return c.Out[0]
}
