package cudac

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// vanishes reports whether everything that the backward pass multiplies or adds up is 0 where the softmax is 0.
func (a *attention) vanishes() bool {
	for _, t := range []*fuse.Tensor{a.Weights, a.Backward.Summed, a.Backward.Queries, a.Backward.Keys} {
		if !zeroWith(t, a.Softmax) {
			return false
		}
	}
	return true
}

// zeroWith reports whether an element of a tensor is 0 where that of another one is 0, if all others are finite.
func zeroWith(t, other *fuse.Tensor) bool {
	if t == other || t.Constant && len(t.Data) == 1 && t.Data[0] == 0 {
		return true
	}
	n := t.From
	if n == nil || n.Kind != fuse.Elementwise || t.Elements() != other.Elements() {
		return false
	}
	zero := func(o fuse.Operand) bool { return zeroWith(o.Tensor, other) }
	switch n.Op {
	case "Mul":
		return slices.ContainsFunc(n.In, zero)
	case "Div":
		return zero(n.In[0])
	case "Where":
		return zero(n.In[1]) && zero(n.In[2])
	case "Add", "Sub", "Cast", "Copy", "Neg":
		return !slices.ContainsFunc(n.In, func(o fuse.Operand) bool { return !zero(o) })
	}
	return false
}
