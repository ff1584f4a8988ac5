package fuse

import (
	"math"
	"math/bits"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// maxRange is how many nodes one after another are asked for the range of a result.
const maxRange = 8

// Most returns a number that no element of a tensor of integers exceeds. It is not ok if an element may be negative, or
// if the nodes that compute the tensor do not say.
func (t *Tensor) Most() (most int, ok bool) { return t.most(maxRange) }

// Residue reports whether a node is the remainder, by a constant above 0, of integers of which none is negative.
func (n *Node) Residue() bool {
	if n.Op != "Mod" {
		return false
	}
	_, positive := n.divisor()
	_, counts := n.In[0].Tensor.Most()
	return positive && counts
}

// divisor is that of a Mod. It is not ok if it is no constant above 0.
func (n *Node) divisor() (int, bool) {
	d := n.In[1].Tensor
	if most, ok := d.Most(); ok && d.Constant && len(d.Data) == 1 {
		return most, most > 0
	}
	return 0, false
}

func (t *Tensor) most(depth int) (most int, ok bool) {
	limit := 0
	switch t.Type {
	case onnxpb.TensorProto_INT32:
		limit = math.MaxInt32
	case onnxpb.TensorProto_INT64:
		limit = math.MaxInt64
	default:
		return 0, false
	}
	if t.Constant {
		for _, x := range t.Data {
			if x < 0 || x > 1<<53 {
				return 0, false
			}
			most = max(most, int(x))
		}
		return most, len(t.Data) > 0
	}
	n := t.From
	if n == nil || n.Kind != Elementwise || depth == 0 {
		return 0, false
	}
	operand := func(i int) (int, bool) { return n.In[i].Tensor.most(depth - 1) }
	var a, b int
	switch n.Op {
	case "Mod": // has the sign of the divisor
		b, ok = n.divisor()
		return b - 1, ok
	case "Cast", "Copy":
		most, ok = operand(0)
		return most, ok && most <= limit
	case "Add", "Mul":
		if a, ok = operand(0); ok {
			b, ok = operand(1)
		}
	}
	if !ok {
		return 0, false
	}
	high, low := uint64(0), uint64(a)+uint64(b)
	if n.Op == "Mul" {
		high, low = bits.Mul64(uint64(a), uint64(b))
	}
	return int(low), high == 0 && low <= uint64(limit)
}
