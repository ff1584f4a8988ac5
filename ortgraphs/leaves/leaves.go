// Package leaves orders the nodes of a graph for ONNX Runtime, which executes nodes depth-first from the leaves: a leaf
// is a node whose results no other node reads, such as the one that computes the gradient of a parameter.
package leaves

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
)

// Last returns the nodes with the leaves at the end, those to which the longest path leads first.
//
// ONNX Runtime ignores the order of the other nodes: it makes a depth-first search from the leaves, beginning with the
// last one (core/graph/graph_viewer.cc). So it computes the loss first, then each gradient as soon as the backward pass
// has come so far, and frees the activations that it needed. A gradient to which all layers contribute is computed at
// the end: computed earlier, it would leave the operands of all others in memory.
func Last(nodes []*onnxpb.NodeProto) []*onnxpb.NodeProto {
	g := newGraph(nodes)
	var inner, last []*onnxpb.NodeProto
	depth := map[*onnxpb.NodeProto]int{}
	for i, n := range nodes {
		if g.read[i] {
			inner = append(inner, n)
			continue
		}
		last = append(last, n)
		depth[n] = g.depth(i)
	}
	slices.Reverse(last) // of equal depth, the first one runs first
	slices.SortStableFunc(last, func(a, b *onnxpb.NodeProto) int { return cmp.Compare(depth[b], depth[a]) })
	return append(inner, last...)
}

// graph says from which nodes each node reads, by position.
type graph struct {
	sources [][]int
	read    []bool
	depths  []int // negative before it is known
}

func newGraph(nodes []*onnxpb.NodeProto) *graph {
	from := map[string]int{}
	for i, n := range nodes {
		for _, name := range n.Output {
			if name != "" {
				from[name] = i
			}
		}
	}
	g := &graph{make([][]int, len(nodes)), make([]bool, len(nodes)), slices.Repeat([]int{-1}, len(nodes))}
	for i, n := range nodes {
		for name := range prune.Reads(n) {
			if source, ok := from[name]; ok {
				g.sources[i] = append(g.sources[i], source)
				g.read[source] = true
			}
		}
	}
	return g
}

// depth is the length of the longest path that leads to a node.
func (g *graph) depth(node int) int {
	if g.depths[node] < 0 {
		g.depths[node] = 0
		for _, s := range g.sources[node] {
			g.depths[node] = max(g.depths[node], g.depth(s)+1)
		}
	}
	return g.depths[node]
}
