package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// smallPart: a tensor with at most 1/smallPart of the elements that a kernel computes is small beside them, so its
// bytes hardly count.
const smallPart = 8

// longRemainder reports whether a node computes the remainder of 64-bit integers, for which a GPU takes some 30
// instructions, or converts one. Such remainders are the hashes of rows and columns of which the mask of dropout is
// made.
func (n *Node) longRemainder() bool {
	remainder := func(n *Node) bool { return n != nil && n.Op == "Mod" && n.Out[0].Type == onnxpb.TensorProto_INT64 }
	return remainder(n) || n.Op == "Cast" && remainder(n.In[0].Tensor.From)
}

// repeatsRemainders reports whether a kernel of the nodes would compute a small tensor of remainders again at each
// place. Kernels of their own compute those of all sites of dropout, and the kernels that read them have the same
// source at all sites, without the salt of one.
func repeatsRemainders(nodes []*Node) bool {
	places := 0
	for _, n := range nodes {
		places = max(places, product(n.domain()))
	}
	return slices.ContainsFunc(nodes,
		func(n *Node) bool { return n.longRemainder() && smallPart*product(n.domain()) < places })
}
