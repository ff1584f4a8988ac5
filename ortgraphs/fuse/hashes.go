package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// hashes reports whether a node computes the remainder of 64-bit integers, for which a GPU takes some 30 instructions, or converts one: the
// mask of dropout is a hash of the row and of the column.
func (n *Node) hashes() bool {
	remainder := func(n *Node) bool { return n != nil && n.Op == "Mod" && n.Out[0].Type == onnxpb.TensorProto_INT64 }
	return remainder(n) || n.Op == "Cast" && remainder(n.In[0].Tensor.From)
}

// rehashes reports whether a kernel of the nodes would compute a hash of a row or of a column at each place. Apart from it, the hashes of all
// sites of dropout are computed by a few kernels. The kernels that read them have the same source at all sites, as the salt is not in it.
func rehashes(nodes []*Node) bool {
	places := 0
	for _, n := range nodes {
		places = max(places, product(n.domain()))
	}
	return slices.ContainsFunc(nodes, func(n *Node) bool { return n.hashes() && 8*product(n.domain()) < places })
}
