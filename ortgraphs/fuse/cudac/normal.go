package cudac

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ofNormal returns shorter code for a node that computes a function of the normal distribution from other nodes of the region, as the gradient of
// GELU does in graphs of PyTorch: the cumulative one, (1 + erf(x / sqrt(2))) / 2, or exp(-x * x / 2). The functions of prelude.cuh have half as
// many instructions, of which they share some. The first keeps its relative precision far below 0, where 1 + erf has none; the second has up to
// 8e-6. The compiler removes what no one else reads of the other nodes.
func (b *body) ofNormal(n *fuse.Node) (code string, ok bool) {
	for _, f := range []struct {
		name  string
		steps []step
		last  func(*fuse.Node) (string, bool)
	}{
		{"normal_of", []step{{"Mul", 0.5}, {"Add", 1}, {"Erf", 0}}, b.rootScaled},
		{"bell_of", []step{{"Exp", 0}, {"Mul", -0.5}}, b.squared},
	} {
		from, found := n, true
		for _, s := range f.steps {
			if from, found = b.back(from, s); !found {
				break
			}
		}
		if !found {
			continue
		}
		if x, ok := f.last(from); ok {
			return fmt.Sprintf("%s(%s)", f.name, x), true
		}
	}
	return "", false
}

// step is an operation in f32. Its other operand, if it has two, is a constant.
type step struct {
	op    string
	other float64
}

// back returns the node of the region that computes the operand of a step.
func (b *body) back(n *fuse.Node, s step) (*fuse.Node, bool) {
	x, ok := withConstant(n, s.op, s.other)
	if !ok || !x.Plain() || x.Tensor.From == nil {
		return nil, false
	}
	_, here := b.values[x.Tensor]
	return x.Tensor.From, here && n.Out[0].Type == onnxpb.TensorProto_FLOAT
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
