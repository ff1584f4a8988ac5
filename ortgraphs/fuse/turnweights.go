package fuse

import "github.com/xtts-host/xtts-host/ortgraphs/onnxpb"

// A product of less than manyMultiplications gains less than the copy of its weight costs.
const manyMultiplications = 1 << 32

// turnWeights copies the weight of a large product in f32 in the order in which the product sums: a GPU multiplies
// matrices in TF32 up to twice as fast if the elements of a sum are neighbours in both operands. A weight is in that
// order for the forward pass, and not for the gradient of what it is multiplied by. Products in bf16 are as fast in any
// order. So are those in f32 without TF32, which the graph does not tell apart: their copies gain nothing. For base
// with 64 rows they add 0.6 % to the bytes of all regions.
func turnWeights(g *Graph) {
	type matrix struct {
		tensor *Tensor
		rows   int
	}
	copies := map[matrix]*Tensor{}
	var nodes []*Node
	for _, n := range g.Nodes {
		if i, ok := n.strided(); ok {
			weight := n.In[i]
			key := matrix{weight.Tensor, weight.Shape()[0]}
			turned := copies[key]
			if turned == nil {
				c := weight.view(swapLast(weight.Shape())).copied("/turned")
				turned, nodes = c.Out[0], append(nodes, c)
				copies[key] = turned
			}
			n.In[i] = Operand{Tensor: turned}
			n.Transposed[i] = !n.Transposed[i]
		}
		nodes = append(nodes, n)
	}
	g.Nodes = nodes
}

// strided returns the operand of a large product in f32 in which the elements of a sum are apart, if it is small beside
// the other one, in which they are neighbours.
func (n *Node) strided() (operand int, ok bool) {
	if !n.is(Product) || n.Out[0].Type != onnxpb.TensorProto_FLOAT || !n.ofTwoMatrices() ||
		n.Out[0].Elements()*n.inner() < manyMultiplications {
		return 0, false
	}
	// The left operand is summed along its rows, the right one along its columns.
	apart := [2]bool{n.Transposed[0], !n.Transposed[1]}
	for i, o := range n.In[:2] {
		other := n.In[1-i]
		if apart[i] && !apart[1-i] && o.Reshaped() && other.Reshaped() && len(o.Shape()) == 2 &&
			4*product(o.Shape()) <= product(other.Shape()) {
			return i, true
		}
	}
	return 0, false
}
