package fuse

import (
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// sinkScales multiplies the result of a product in bf16 with a power of two instead of an operand: (x * c) y = (x y) *
// c, to the bit. What reads the result multiplies it without reading or writing anything for it, and the product reads
// x, which is in memory. So attention reads the queries in the result of a merged product. Operands in f32 are copied
// into the order of their product in any case.
func sinkScales(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	var nodes []*Node
	for _, n := range g.Nodes {
		nodes = append(nodes, n)
		if n.Kind == Product {
			result := len(nodes) // the second factor multiplies before the first
			for i := range n.In {
				if x, factor, ok := scaled(n.In[i], uses, outputs); ok && absorbs(n, uses, outputs) {
					nodes = slices.Insert(nodes, result, scaleResult(n, factor))
					n.In[i] = x
				}
			}
		}
	}
	g.Nodes = nodes
	g.Nodes = reachable(g)
}

// scaled splits an operand x·factor into x and the factor. It does so if three things hold: the factor is a constant
// power of two, only products read x·factor, and other nodes read x too.
func scaled(o Operand, uses map[*Tensor][]use, outputs map[*Tensor]bool) (x, factor Operand, ok bool) {
	n := o.Tensor.From
	if n == nil || n.Kind != Elementwise || n.Op != "Mul" || outputs[o.Tensor] ||
		o.Tensor.Type != onnxpb.TensorProto_BFLOAT16 {
		return x, factor, false
	}
	x, factor = n.In[0], n.In[1]
	if _, constant := small(x); constant {
		x, factor = factor, x
	}
	c, constant := small(factor)
	fraction, _ := math.Frexp(math.Abs(c))
	if !constant || fraction != 0.5 || len(uses[x.Tensor]) < 2 || !slices.Equal(x.Shape(), o.Tensor.Shape) {
		return x, factor, false
	}
	for _, u := range uses[o.Tensor] {
		if u.node.Kind != Product || !absorbs(u.node, uses, outputs) {
			return x, factor, false
		}
	}
	for _, v := range o.Views {
		x = x.view(v)
	}
	return x, factor, true
}

// absorbs reports whether only nodes that regions compute read the result of a product.
func absorbs(n *Node, uses map[*Tensor][]use, outputs map[*Tensor]bool) bool {
	return !outputs[n.Out[0]] && !slices.ContainsFunc(uses[n.Out[0]], func(u use) bool { return u.node.Kind > Join })
}

// scaleResult returns the node that multiplies the result of a product, which gets another tensor.
func scaleResult(n *Node, factor Operand) *Node {
	t := n.Out[0]
	product := n.makes(t.Name+"/unscaled", t.Type, t.Shape)
	t.From = &Node{Kind: Elementwise, Op: "Mul", In: []Operand{{Tensor: product}, factor}, Out: []*Tensor{t}}
	return t.From
}
