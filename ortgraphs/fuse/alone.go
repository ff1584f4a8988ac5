package fuse

import "github.com/xtts-host/xtts-host/ortgraphs/onnxpb"

const (
	// alignment divides the inner size and the number of columns of a product that is alone: otherwise a GPU may not use its fast units.
	alignment = 8
	// aloneElements is the size of results from which on products are alone: a tile of 128 x 128 for each multiprocessor of a large GPU. The sums
	// of smaller results are divided among multiprocessors, for which ONNX Runtime gives its products more memory.
	aloneElements = 128 * 128 * 128
)

// findAlone finds the products in bf16 for which the library chooses an algorithm: those with a bias, and those of one matrix with a large
// result. Gradients of weights, which are outputs of the graph, run with others of their form.
func findAlone(g *Graph) {
	outputs := g.outputs()
	for _, n := range g.Nodes {
		t := n.Out[0]
		large := n.Kind == Product && n.role == free && t.Type == onnxpb.TensorProto_BFLOAT16 && t.Elements() >= aloneElements && !outputs[t]
		if n.adds() || large && n.oneMatrix() && n.In[0].reshaped() && n.In[1].reshaped() {
			n.role = alone
		}
	}
}

// oneMatrix reports whether a product is that of two matrices of aligned sizes, where the first may have its rows in several dimensions.
func (n *Node) oneMatrix() bool {
	shape := n.Out[0].Shape
	rows := len(n.In[0].Shape()) == 2 || n.In[0].reshaped() && !n.Transposed[0]
	return rows && len(n.In[1].Shape()) == 2 && n.inner()%alignment == 0 && shape[len(shape)-1]%alignment == 0
}
