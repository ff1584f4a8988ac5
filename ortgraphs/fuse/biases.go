package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// flattenBiased lets a bias be added to a product in bf16 in the shape of the product, which a model may have reshaped
// before: as PyTorch does where a linear layer reads a transposed tensor. Then the library can add the bias.
func flattenBiased(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	for _, n := range g.Nodes {
		p, bias := biased(n)
		if p == nil || outputs[p.Out[0]] || len(uses[p.Out[0]]) != 1 {
			continue
		}
		t := n.Out[0]
		if slices.Equal(t.Shape, p.Out[0].Shape) {
			continue
		}
		n.In = []Operand{{Tensor: p.Out[0]}, bias}
		t.reshape(p.Out[0].Shape, uses[t])
	}
}

// addBiases makes the addition of a bias to all rows of a product in bf16 part of the product: a library adds it before
// it writes the result. The sum is rounded once. Biases that are converted from f32 for that are converted by one
// kernel, because each alone costs little more than its launch. Products in f32 stay as they are: what follows them
// adds the bias, and the library computes them faster without it.
func addBiases(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	gone := map[*Node]bool{}
	for _, n := range g.Nodes {
		p, bias := biased(n)
		if p == nil || gone[p] || outputs[p.Out[0]] || len(uses[p.Out[0]]) != 1 ||
			!slices.Equal(p.Out[0].Shape, n.Out[0].Shape) || slices.ContainsFunc(uses[n.Out[0]], use.copies) {
			continue
		}
		gone[p] = true
		if c := bias.Tensor.From; c != nil {
			c.work = Biases{}
		}
		n.Kind, n.Op, n.In, n.Transposed = Product, p.Op, []Operand{p.In[0], p.In[1], bias}, p.Transposed
		if a := activation(n, uses); a != nil {
			a.work = &Products{}
		}
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { return gone[n] })
}

// copies reports whether an operand is that of a product which takes it in another order than it has in memory. What
// copies it adds the bias as well.
func (u use) copies() bool {
	return u.node.is(Product) && u.operand < len(u.node.Transposed) &&
		u.node.In[u.operand].needsCopy()
}

// biased returns the product, which may be reshaped, and the bias that a node adds, or nil.
func biased(n *Node) (p *Node, bias Operand) {
	if !n.is(Elementwise) || n.Op != "Add" || n.Out[0].Type != onnxpb.TensorProto_BFLOAT16 {
		return nil, bias
	}
	for i, o := range n.In {
		p, bias = o.Tensor.From, n.In[1-i]
		if p == nil || !p.is(Product) || p.adds() || !o.Reshaped() ||
			!slices.Equal(o.Shape(), n.Out[0].Shape) {
			continue
		}
		last := func(t *Tensor) []int { return t.Shape[len(t.Shape)-1:] }
		columns := last(n.Out[0])
		if p.ofTwoMatrices() && slices.Equal(last(p.Out[0]), columns) && slices.Equal(bias.Shape(), columns) &&
			isBias(bias) {
			return p, bias
		}
	}
	return nil, bias
}

// isBias reports whether an operand is a parameter, as it is or converted.
func isBias(o Operand) bool {
	c := o.Tensor.From
	return o.Plain() && (c == nil || c.Kind == Elementwise && c.Op == "Cast" && c.In[0].Plain() &&
		c.In[0].Tensor.From == nil && c.In[0].Tensor.Type == onnxpb.TensorProto_FLOAT)
}

// activation returns the node that computes GELU of a product, as a library computes it, if only products read that: a
// region that reads it computes it from the product.
func activation(p *Node, uses map[*Tensor][]use) *Node {
	t := p.Out[0]
	for _, u := range uses[t] {
		n := u.node
		if n.Op == "GeluTanh" && n.fusible() && n.In[0].Reshaped() &&
			!slices.ContainsFunc(uses[n.Out[0]], func(u use) bool { return u.node.Kind != Product || u.copies() }) {
			return n
		}
	}
	return nil
}

// maxNarrowed is how many biases one kernel converts.
const maxNarrowed = 100

// Biases says that the nodes of a region convert biases from f32 to bf16, each in its own shape.
type Biases struct{ pointwise }

func (Biases) group(nodes []*Node) [][]*Node { return slices.Collect(slices.Chunk(nodes, maxNarrowed)) }

func (Biases) complete(r *Region) {
	elements := 0
	for _, t := range r.Out {
		elements += t.Elements()
	}
	r.Domain = []int{elements}
}
