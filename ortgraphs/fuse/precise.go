package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// Precise reports whether nothing that a region computes for a result in f64 is rounded to fewer digits.
func (r *Region) Precise(t *Tensor) bool {
	if !isDouble(t.Type) {
		return false
	}
	needs := map[*Tensor]bool{t: true}
	for i := len(r.Nodes) - 1; i >= 0; i-- {
		n := r.Nodes[i]
		if !needs[n.Out[0]] {
			continue
		}
		if isFloat(n.Out[0].Type) && n.exactness() != operators.Selected {
			return false
		}
		for _, o := range n.In {
			needs[o.Tensor] = true
		}
	}
	return true
}

// widens reports whether a region converts a tensor to f64, and reads it for nothing else: no digit of it is lost.
func (r *Region) widens(t *Tensor) bool {
	return !slices.ContainsFunc(r.Nodes, func(n *Node) bool {
		reads := slices.ContainsFunc(n.In, func(o Operand) bool { return o.Tensor == t })
		return reads && !(n.Op == "Cast" && isDouble(n.Out[0].Type))
	})
}
