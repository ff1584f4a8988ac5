package cudac

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ofLogistic returns shorter code for a node that computes (1 + tanh(x)) / 2 or 1 - tanh(x)^2 from other nodes of the
// region, as the gradient of GELU by the formula with tanh does. tanh has a branch for arguments near 0, for a
// precision that these results do not have there.
func (b *body) ofLogistic(n *fuse.Node) (code string, ok bool) {
	function := "half_of_one_plus_tanh"
	first, ok := b.chain(n, step{"Mul", 0.5}, step{"Add", 1})
	if !ok && n.Op == "Sub" && isNumber(n.In[0], 1) {
		function = "one_minus_tanh_squared"
		if first, ok = b.inside(n.In[1]); ok {
			first, ok = b.factor(first)
		}
	}
	if !ok || first.Kind != fuse.Elementwise || first.Op != "Tanh" || first.Out[0].Type != onnxpb.TensorProto_FLOAT {
		return "", false
	}
	x, scale, ok := b.scaled(first)
	return fmt.Sprintf("%s(%s, %s)", function, x, literal(scale, onnxpb.TensorProto_FLOAT)), ok
}

// inside returns the node of the region that computes an operand.
func (b *body) inside(o fuse.Operand) (*fuse.Node, bool) {
	_, here := b.values[o.Tensor]
	return o.Tensor.From, here && o.Plain() && o.Tensor.From != nil
}

// factor returns the node of the region whose result another one of its nodes multiplies by itself.
func (b *body) factor(n *fuse.Node) (*fuse.Node, bool) {
	first, ok := b.inside(n.In[0])
	if !ok || n.Out[0].Type != onnxpb.TensorProto_FLOAT {
		return nil, false
	}
	_, ok = b.squared(n)
	return first, ok
}

// scaled returns what a node of the region reads, as a number that the region has and its factor.
func (b *body) scaled(n *fuse.Node) (x string, factor float64, ok bool) {
	m, here := b.inside(n.In[0])
	if here && m.Kind == fuse.Elementwise && m.Op == "Mul" && m.Out[0].Type == onnxpb.TensorProto_FLOAT {
		for i, o := range m.In {
			if o.Tensor.Constant && len(o.Tensor.Data) == 1 {
				x, ok = b.known(m, m.In[1-i])
				return x, o.Tensor.Data[0], ok
			}
		}
	}
	x, ok = b.known(n, n.In[0])
	return x, 1, ok
}
