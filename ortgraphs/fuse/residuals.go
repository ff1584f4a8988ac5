package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// addResiduals makes the addition of a matrix to a product in bf16 part of the product, as at the end of a residual block: a library reads the
// matrix while it writes the result. So no kernel reads the product only for the sum, which is rounded once.
func addResiduals(g *Graph) {
	uses, outputs := g.uses(), g.outputs()
	gone := map[*Node]bool{}
	for _, n := range g.Nodes {
		p, residual := summed(n, uses)
		if p == nil || outputs[p.Out[0]] || len(uses[p.Out[0]]) != 1 || slices.ContainsFunc(uses[n.Out[0]], use.copies) {
			continue
		}
		gone[p] = true
		n.Kind, n.Op, n.Transposed = Product, p.Op, p.Transposed
		n.In = append(slices.Clone(p.In), residual.view(View{Op: Reshape, To: p.Out[0].Shape}))
		n.Out[0].reshape(p.Out[0].Shape, uses[n.Out[0]])
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { return gone[n] })
}

// summed returns the product and the matrix that a node adds, or nil. The matrix is in memory in any case, or something else reads it, too: what
// a kernel computes only for the sum, it adds as well. A product without a bias must have a large result to be planned.
func summed(n *Node, uses map[*Tensor][]use) (p *Node, residual Operand) {
	if n.Kind != Elementwise || n.Op != "Add" || n.role == inAttention || n.Out[0].Type != onnxpb.TensorProto_BFLOAT16 {
		return nil, residual
	}
	elements := n.Out[0].Elements()
	for i, o := range n.In {
		p, residual = o.Tensor.From, n.In[1-i]
		if p == nil || p.Kind != Product || p.role == inAttention || p.addsResidual() || !o.reshaped() || p.Out[0].Elements() != elements {
			continue
		}
		matrix := residual.reshaped() && residual.Tensor.Elements() == elements && residual.Tensor != p.Out[0]
		planned := p.addsBias() || elements >= largeResult && p.ofTwoMatrices() && p.In[0].reshaped() && p.In[1].reshaped()
		if matrix && planned && (inMemory(residual.Tensor) || len(uses[residual.Tensor]) > 1) {
			return p, residual
		}
	}
	return nil, residual
}

// reshape gives a tensor another shape, and those who read it see the old one.
func (t *Tensor) reshape(shape []int, readers []use) {
	old := View{Op: Reshape, To: t.Shape}
	t.Shape = shape
	for _, u := range readers {
		o := Operand{Tensor: t}.view(old)
		for _, v := range u.node.In[u.operand].Views {
			o = o.view(v)
		}
		u.node.In[u.operand] = o
	}
}
