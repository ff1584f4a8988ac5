package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// addResiduals makes the addition of a matrix to a product in bf16 part of the product, as at the end of a residual
// block: a library reads the matrix while it writes the result. So no kernel reads the product only for the sum, which
// is rounded once.
func addResiduals(g *Graph) {
	r := &residuals{uses: g.uses(), outputs: g.outputs(), at: map[*Node]int{}}
	for i, n := range g.Nodes {
		r.at[n] = i
	}
	gone := map[*Node]bool{}
	for _, n := range g.Nodes {
		p, residual := r.find(n)
		if p == nil {
			continue
		}
		gone[p] = true
		n.Kind, n.Op, n.Transposed = Product, p.Op, p.Transposed
		n.In = append(slices.Clone(p.In), residual.view(View{Op: Reshape, To: p.Out[0].Shape}))
		n.Out[0].reshape(p.Out[0].Shape, r.uses[n.Out[0]])
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { return gone[n] })
}

// residuals finds what products add. What it knows of uses stays true: a node that becomes a product has what it reads
// in the same places.
type residuals struct {
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	at      map[*Node]int // the order of the graph
}

// find returns the product and the matrix that a node adds, if the product can add it, or nil.
func (r *residuals) find(n *Node) (p *Node, residual Operand) {
	if !n.is(Elementwise) || n.Op != "Add" || n.Out[0].Type != onnxpb.TensorProto_BFLOAT16 ||
		slices.ContainsFunc(r.uses[n.Out[0]], use.copies) {
		return nil, residual
	}
	for i, o := range n.In {
		if p, residual = o.Tensor.From, n.In[1-i]; r.canAdd(n, o, residual) {
			return p, residual
		}
	}
	return nil, residual
}

// canAdd reports whether the product of an operand can add the other one.
func (r *residuals) canAdd(n *Node, o, residual Operand) bool {
	t, elements := o.Tensor, n.Out[0].Elements()
	p := t.From
	switch {
	case p == nil || p.work != nil || p.addsResidual() || !p.addsBias() && !p.large():
		return false
	case !o.Reshaped() || t.Elements() != elements || r.outputs[t] || len(r.uses[t]) != 1:
		return false
	case !residual.Reshaped() || residual.Tensor.Elements() != elements:
		return false
	}
	// What is set apart remembers the shapes of what it reads.
	remembered := slices.ContainsFunc(r.uses[n.Out[0]], func(u use) bool { return u.node.work != nil })
	return r.stored(residual.Tensor, p) && (!remembered || slices.Equal(t.Shape, n.Out[0].Shape))
}

// stored reports whether a tensor is in memory before a product runs, in any case: one that a kernel computes for the
// sum, it adds as well.
func (r *residuals) stored(t *Tensor, p *Node) bool {
	return inMemory(t) || r.outputs[t] || r.needs(p, t, map[*Node]bool{})
}

// needs reports whether a node is computed from a tensor.
func (r *residuals) needs(n *Node, t *Tensor, seen map[*Node]bool) bool {
	if r.at[n] <= r.at[t.From] || seen[n] {
		return false
	}
	seen[n] = true
	return slices.ContainsFunc(n.In, func(o Operand) bool {
		return o.Tensor == t || o.Tensor != nil && o.Tensor.From != nil && r.needs(o.Tensor.From, t, seen)
	})
}
