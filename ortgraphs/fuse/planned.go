package fuse

import "github.com/xtts-host/xtts-host/ortgraphs/onnxpb"

// alignment divides the sizes of a planned product that are strides in memory: otherwise a GPU may not use its fast
// units.
const alignment = 8

// findPlanned finds the products in bf16 for which the library chooses an algorithm: those that add something, and
// those with a large result. The sums of smaller results are divided among multiprocessors: as gradients of weights in
// launches of many, or by ONNX Runtime's own products, which have more memory for that.
func findPlanned(g *Graph) {
	uses := g.uses()
	for _, n := range g.Nodes {
		if !n.is(Product) || !n.adds() && !n.large() {
			continue
		}
		n.work = &Products{Planned: true}
		for _, u := range uses[n.Out[0]] {
			if _, of := u.node.work.(*Products); of && u.node.Kind == Elementwise { // its activation
				u.node.work = n.work
			}
		}
	}
}

// large reports whether a node is a product in bf16 with a large result, as a library computes it with an algorithm of
// its own.
func (n *Node) large() bool {
	return n.Kind == Product && n.Out[0].Type == onnxpb.TensorProto_BFLOAT16 && n.Out[0].Elements() >= largeResult &&
		n.ofTwoMatrices() && n.In[0].Reshaped() && n.In[1].Reshaped()
}

// ofTwoMatrices reports whether a product is that of two matrices of aligned sizes, the first of which may have its
// rows in several dimensions.
func (n *Node) ofTwoMatrices() bool {
	left, right, out := n.In[0], n.In[1].Shape(), n.Out[0].Shape
	switch {
	case len(right) != 2 || n.inner()%alignment != 0 || out[len(out)-1]%alignment != 0:
		return false
	case n.Transposed[0]:
		return len(left.Shape()) == 2 && left.Shape()[1]%alignment == 0
	}
	return len(left.Shape()) == 2 || left.Reshaped()
}
