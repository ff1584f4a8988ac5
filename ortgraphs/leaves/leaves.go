// Package leaves orders the nodes of a graph for ONNX Runtime, which executes nodes depth-first from the leaves: a leaf is a node
// whose results no other node reads, such as the one that computes the gradient of a parameter.
package leaves

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
)

// Last returns the nodes with the leaves at the end, in reverse order.
//
// ONNX Runtime ignores the order of the other nodes: it makes a depth-first search from the leaves, beginning with the last one
// (core/graph/graph_viewer.cc). A graph that PyTorch exported has the loss and the last layers' gradients first. In the
// reverse order ONNX Runtime computes each gradient as soon as it can, and frees the activations that it needed.
func Last(nodes []*onnxpb.NodeProto) []*onnxpb.NodeProto {
	read := map[string]bool{}
	for _, n := range nodes {
		for name := range prune.Reads(n) {
			read[name] = true
		}
	}
	var inner, last []*onnxpb.NodeProto
	for _, n := range nodes {
		if slices.ContainsFunc(n.Output, func(name string) bool { return read[name] }) {
			inner = append(inner, n)
		} else {
			last = append(last, n)
		}
	}
	slices.Reverse(last)
	return append(inner, last...)
}
