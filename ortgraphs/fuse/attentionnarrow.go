package fuse

import (
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// NarrowAttention rounds the matrices of each attention in f32 to bf16, so that [Partition] finds kernels for it:
// queries, keys, values and weights, their gradients, and the results. What lies between the products stays f32. It
// returns the number of softmaxes concerned.
func NarrowAttention(g *Graph) int {
	uses, outputs := g.uses(), g.outputs()
	products := map[*Node]bool{}
	found := 0
	for _, n := range g.Nodes {
		s, ok := softmaxOf(n, uses)
		if !ok {
			continue
		}
		f := &finding{
			softmax: s, element: onnxpb.TensorProto_FLOAT, uses: uses, outputs: outputs, depends: map[*Tensor]source{},
		}
		if !f.find() {
			continue
		}
		found++
		for _, p := range f.products() {
			products[p] = true
		}
	}
	narrow(g, products)
	return found
}

// narrow makes products read and write bf16.
func narrow(g *Graph, products map[*Node]bool) {
	var nodes []*Node
	cast := func(from *Tensor) *Node {
		nodes = append(nodes, &Node{Kind: Elementwise, Op: "Cast", In: []Operand{{Tensor: from}}})
		return nodes[len(nodes)-1]
	}
	short := func(n *Node, t *Tensor) *Tensor {
		return n.makes(t.Name+"/bf16", onnxpb.TensorProto_BFLOAT16, t.Shape)
	}
	casts := map[*Tensor]*Tensor{}
	for _, n := range g.Nodes {
		if !products[n] {
			nodes = append(nodes, n)
			continue
		}
		for i, o := range n.In {
			if casts[o.Tensor] == nil {
				casts[o.Tensor] = short(cast(o.Tensor), o.Tensor)
			}
			n.In[i].Tensor = casts[o.Tensor]
		}
		wide := n.Out[0]
		nodes = append(nodes, n)
		wide.From = cast(short(n, wide))
		wide.From.Out = []*Tensor{wide}
	}
	g.Nodes = nodes
}

// products returns the products of an attention: that of queries and keys, that of the gradient, and those of the
// matrices of all places.
func (f *finding) products() []*Node {
	list := []*Node{f.product}
	if f.gradient != nil {
		list = append(list, f.gradient)
	}
	for _, r := range f.readers {
		list = append(list, r.node)
	}
	return list
}
