package cudac

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ofNormal returns shorter code for a node that computes a function of the normal distribution from other nodes of the
// region, as the gradient of GELU does in graphs of PyTorch: the cumulative one, (1 + erf(x / sqrt(2))) / 2, or exp(-x
// * x / 2). The functions of prelude.cuh have half as many instructions, of which they share some. The first keeps its
// relative precision far below 0, where 1 + erf has none; the second has up to 8e-6. The compiler removes what no one
// else reads of the other nodes.
func (b *body) ofNormal(n *fuse.Node) (code string, ok bool) {
	if first, ok := b.chain(n, step{"Mul", 0.5}, step{"Add", 1}, step{"Erf", 0}); ok {
		if x, ok := b.rootScaled(first); ok {
			return fmt.Sprintf("normal_of(%s)", x), true
		}
	}
	if first, ok := b.chain(n, step{"Exp", 0}, step{"Mul", -0.5}); ok {
		if x, ok := b.squared(first); ok {
			return fmt.Sprintf("bell_of(%s)", x), true
		}
	}
	return "", false
}

// step is an operation in f32. Its other operand, if it has two, is a constant.
type step struct {
	op    string
	other float64
}

// chain follows steps from a node back to the node whose result the last of them takes, all in the region.
func (b *body) chain(n *fuse.Node, steps ...step) (*fuse.Node, bool) {
	for _, s := range steps {
		x, ok := withConstant(n, s.op, s.other)
		if !ok || n.Out[0].Type != onnxpb.TensorProto_FLOAT {
			return nil, false
		}
		if n, ok = b.inside(x); !ok {
			return nil, false
		}
	}
	return n, true
}

// rootScaled returns what a node divides by the root of 2.
func (b *body) rootScaled(n *fuse.Node) (string, bool) {
	x, ok := withConstant(n, "Mul", math.Sqrt2/2)
	if !ok && n.Op == "Div" && isNumber(n.In[1], math.Sqrt2) {
		x, ok = n.In[0], true
	}
	if !ok {
		return "", false
	}
	return b.known(n, x)
}

// squared returns what a node multiplies by itself. The region may compute that twice, with the same code.
func (b *body) squared(n *fuse.Node) (string, bool) {
	if n.Op != "Mul" && !(n.Op == "Pow" && isNumber(n.In[1], 2)) {
		return "", false
	}
	x, ok := b.known(n, n.In[0])
	if n.Op == "Mul" && ok {
		other, known := b.known(n, n.In[1])
		ok = known && other == x
	}
	return x, ok
}

// known returns the code of an operand of a node whose code has been written.
func (b *body) known(n *fuse.Node, o fuse.Operand) (string, bool) {
	v, err := b.operand(n, o, b.loops.Of(n.Out[0]))
	return v.code, err == nil
}

// withConstant returns the operand of an operation that has another one, if any, which is a constant.
func withConstant(n *fuse.Node, op string, constant float64) (x fuse.Operand, ok bool) {
	switch {
	case n.Kind != fuse.Elementwise || n.Op != op:
	case len(n.In) == 1, len(n.In) == 2 && isNumber(n.In[1], constant):
		return n.In[0], true
	case len(n.In) == 2 && isNumber(n.In[0], constant):
		return n.In[1], true
	}
	return x, false
}

// isNumber reports whether an operand is a number in f32.
func isNumber(o fuse.Operand, x float64) bool {
	return o.Tensor.Constant && len(o.Tensor.Data) == 1 && float32(o.Tensor.Data[0]) == float32(x)
}
