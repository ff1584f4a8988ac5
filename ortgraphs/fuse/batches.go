package fuse

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Limits of the products that one launch computes.
const (
	// batchElements is the number of elements of their results that keeps all multiprocessors of a large GPU busy: 128
	// squares of 128 x 256. A product whose result is half as large, or larger, runs by itself.
	batchElements = 1 << 22
	largeResult   = batchElements / 2
	// batchBytes is how much memory the operands of products that wait for others may take. With 320 MiB, a step of
	// base in bf16, 16 rows of 448 frames, needs no more memory than if none waits, because most is in memory before
	// the first one waits; with 352 MiB it does.
	batchBytes = 320 << 20
	maxBatch   = 64
	// minBatch is the number of products of a form that must find room in batchBytes, each with operands of its own.
	// Two or three products with longer sums leave multiprocessors idle, as a batch: a library divides the sum of one,
	// and is faster.
	minBatch = 4
	// minBatchSide is the smallest side of their results: a library divides a long sum of fewer elements better than a
	// batch of them.
	minBatchSide = 128
)

// batch is a number of products of one form: all have the same shapes, types and orders of memory.
type batch struct {
	groups   []*group
	elements int // of the results
}

// batchProducts joins products that a library computes with one launch. The gradients of weights have small results
// with long sums: one of them does not keep a GPU busy, but many of the same form do, and nothing in the graph waits
// for them.
func (p *partition) batchProducts() {
	p.sort()
	waiting := &waiting{open: map[string]*batch{}}
	for _, g := range p.order {
		if n := g.nodes[0]; p.waits(n) {
			waiting.add(g, n)
		}
	}
	for len(waiting.forms) > 0 {
		waiting.launch(waiting.forms[0])
	}
	last := map[*group]*batch{}
	for _, b := range waiting.done {
		last[b.groups[len(b.groups)-1]] = b
		for _, g := range b.groups[:len(b.groups)-1] {
			last[g] = nil
		}
	}
	var nodes []*Node // each batch at the place of its last product
	for _, g := range p.order {
		b, found := last[g]
		switch {
		case !found:
			nodes = append(nodes, g.nodes...)
		case b != nil:
			nodes = append(nodes, b.join()...)
		}
	}
	p.graph.Nodes = nodes
	p.sort()
	p.graph.Nodes = nodesOf(p.order)
}

// waits reports whether a node is a product of two matrices with a small result, which nothing but an output of the
// graph reads, and of whose form there is room for several.
func (p *partition) waits(n *Node) bool {
	t := n.Out[0]
	if !n.is(Product) || !p.outputs[t] || len(p.uses[t]) > 0 {
		return false
	}
	bytes := 0
	for _, o := range n.In {
		if len(o.Shape()) != 2 || !o.Reshaped() {
			return false
		}
		bytes += o.Tensor.Bytes()
	}
	float := t.Type == onnxpb.TensorProto_BFLOAT16 || t.Type == onnxpb.TensorProto_FLOAT
	return float && bytes*minBatch <= batchBytes && t.Elements() < largeResult &&
		min(t.Shape[0], t.Shape[1]) >= minBatchSide
}

// waiting are the products that wait for others of their form.
type waiting struct {
	forms []string // in the order of their first products
	open  map[string]*batch
	done  []*batch
}

func (w *waiting) add(g *group, n *Node) {
	form := fmt.Sprint(n.In[0].Shape(), n.In[1].Shape(), n.Transposed, n.Out[0].Type)
	b := w.open[form]
	if b == nil {
		b = &batch{}
		w.open[form] = b
		w.forms = append(w.forms, form)
	}
	b.groups = append(b.groups, g)
	b.elements += n.Out[0].Elements()
	if b.elements >= batchElements || len(b.groups) == maxBatch {
		w.launch(form)
	}
	for w.memory(w.forms...) > batchBytes {
		w.launch(w.largest())
	}
}

// launch ends a batch.
func (w *waiting) launch(form string) {
	if b := w.open[form]; len(b.groups) > 1 {
		w.done = append(w.done, b)
	}
	delete(w.open, form)
	w.forms = slices.DeleteFunc(w.forms, func(f string) bool { return f == form })
}

// memory is that of the operands of some forms.
func (w *waiting) memory(forms ...string) (bytes int) {
	seen := map[*Tensor]bool{}
	for _, f := range forms {
		for _, g := range w.open[f].groups {
			for _, o := range g.nodes[0].In {
				if !seen[o.Tensor] {
					seen[o.Tensor] = true
					bytes += o.Tensor.Bytes()
				}
			}
		}
	}
	return bytes
}

// largest is the form whose operands take the most memory.
func (w *waiting) largest() string {
	best := w.forms[0]
	for _, f := range w.forms {
		if w.memory(f) > w.memory(best) {
			best = f
		}
	}
	return best
}

// join makes one group of the products and returns its nodes.
func (b *batch) join() []*Node {
	whole := &group{work: &Products{}}
	for _, g := range b.groups {
		whole.nodes = append(whole.nodes, g.nodes...)
	}
	for _, n := range whole.nodes {
		n.group = whole
	}
	return whole.nodes
}

// Products says that a region is a number of matrix products of one form, A B, which a library computes with one
// launch. Each node is one.
type Products struct {
	Count                int
	Rows, Inner, Columns int
	// Transposed says which operands are in memory with their dimensions exchanged.
	Transposed [2]bool
	Type       shapes.Type
	// Planned says that the library chooses an algorithm for the only product, and finds its matrices in the region's
	// tensors.
	Planned bool
	// Bias and Residual say what the product, which is planned, adds. Gelu is the node that computes GELU of the sum,
	// or nil.
	Bias, Residual bool
	Gelu           *Node
}

func (p *Products) complete(r *Region) {
	n := r.Nodes[0]
	t := n.Out[0]
	r.Domain = t.Shape
	p.Count, p.Columns = len(r.Nodes), t.Shape[len(t.Shape)-1]
	p.Rows, p.Inner, p.Transposed, p.Type = t.Elements()/p.Columns, n.inner(), n.Transposed, t.Type
	if p.Planned {
		p.Count, p.Bias, p.Residual = 1, n.addsBias(), n.addsResidual()
		if len(r.Nodes) == 2 {
			p.Gelu = r.Nodes[1]
		}
	}
}

func (p *Products) group(nodes []*Node) [][]*Node { return [][]*Node{nodes} }
func (p *Products) RoundsAsNodes() bool           { return false }

func (p *Products) ops(*Region) string {
	name := "product"
	switch {
	case !p.Planned:
		return fmt.Sprintf("product %d", p.Count)
	case !p.Bias && !p.Residual:
		return "planned product"
	case p.Bias:
		name += " with a bias"
	}
	switch {
	case p.Bias && p.Residual:
		name += " and a residual"
	case p.Residual:
		name += " with a residual"
	}
	return name
}

func (p *Products) count(l *Ledger, r *Region) (kernels int) {
	if !p.Planned {
		l.Batched.Products += p.Count
		l.Batched.Launches++
		return 0
	}
	if l.Planned++; p.Bias {
		l.Biased++
	}
	if p.Residual {
		l.Residuals++
		l.Fused.add(0, r.Out[0].Bytes()) // Products has what a product alone reads and writes
	}
	if p.Gelu != nil && len(r.Out) == 2 {
		l.Fused.add(0, p.Gelu.Out[0].Bytes())
	}
	return 0
}
