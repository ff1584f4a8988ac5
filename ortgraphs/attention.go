package ortgraphs

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// MasksScores reports whether a graph of the bundle may have attention with a mask: a softmax of sums or choices.
func MasksScores(b *Bundle, file string) bool { return masksScores(b.models[file].GetGraph()) }

func masksScores(g *onnxpb.GraphProto) bool {
	masked := map[string]bool{}
	for _, n := range g.GetNode() {
		op := n.GetOpType()
		if op == "Softmax" && slices.ContainsFunc(n.GetInput(), func(in string) bool { return masked[in] }) {
			return true
		}
		if op == "Add" || op == "Sum" || op == "Where" || op == "Sub" {
			for _, out := range n.GetOutput() {
				masked[out] = true
			}
		}
	}
	return false
}
