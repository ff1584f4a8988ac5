package cudac

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ofLogistic returns shorter code for a node that computes (1 + tanh(x)) / 2 or 1 - tanh(x)^2 from other nodes of the region, as the gradient of
// GELU by the formula with tanh does. The functions of prelude.cuh need no tanh, whose precision near 0 neither result has.
func (b *body) ofLogistic(n *fuse.Node) (code string, ok bool) {
	function := "logistic_of"
	first, ok := b.chain(n, step{"Mul", 0.5}, step{"Add", 1})
	if !ok && n.Op == "Sub" && isNumber(n.In[0], 1) && n.In[1].Plain() && n.In[1].Tensor.From != nil {
		function = "slope_of"
		first, ok = b.factor(n.In[1].Tensor.From)
	}
	if !ok || first.Kind != fuse.Elementwise || first.Op != "Tanh" || first.Out[0].Type != onnxpb.TensorProto_FLOAT {
		return "", false
	}
	x, scale, ok := b.scaled(first)
	return fmt.Sprintf("%s(%s, %s)", function, x, literal(scale, onnxpb.TensorProto_FLOAT)), ok
}

// scaled returns what a node reads, as a number that the region has and its factor.
func (b *body) scaled(n *fuse.Node) (x string, factor float64, ok bool) {
	if m := n.In[0].Tensor.From; m != nil && m.Kind == fuse.Elementwise && m.Op == "Mul" && n.In[0].Plain() && m.Out[0].Type == onnxpb.TensorProto_FLOAT {
		_, here := b.values[m.Out[0]]
		for i, o := range m.In {
			if o.Tensor.Constant && len(o.Tensor.Data) == 1 && here {
				x, ok = b.known(m, m.In[1-i])
				return x, o.Tensor.Data[0], ok
			}
		}
	}
	x, ok = b.known(n, n.In[0])
	return x, 1, ok
}

// factor returns the node of the region whose result a node multiplies by itself.
func (b *body) factor(n *fuse.Node) (*fuse.Node, bool) {
	if _, ok := b.squared(n); !ok || n.Out[0].Type != onnxpb.TensorProto_FLOAT || !n.In[0].Plain() || n.In[0].Tensor.From == nil {
		return nil, false
	}
	_, here := b.values[n.In[0].Tensor]
	return n.In[0].Tensor.From, here
}
