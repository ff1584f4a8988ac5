package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// matrix returns an operand of a product of which left says that it is the first one: with rows if it has one for each
// position.
func matrix(n *Node, operand int, columns bool) *Matrix {
	return &Matrix{n.In[operand], n.Transposed[operand] != columns}
}

// query, key and the others return matrices with a row for each position.
func (f *finding) query() *Matrix      { return matrix(f.product, 0, false) }
func (f *finding) key() *Matrix        { return matrix(f.product, 1, true) }
func (f *finding) resultGrad() *Matrix { return matrix(f.gradient, 0, false) }
func (f *finding) value() *Matrix      { return matrix(f.gradient, 1, true) }

// other returns the matrix with which a reader multiplies that of all places.
func (r reader) other() *Matrix { return matrix(r.node, 1-r.operand, r.operand == 1) }

// sameMatrices reports whether the products of the backward pass read the same matrices.
func (f *finding) sameMatrices() bool {
	dv, _ := f.reader(true, false)
	dq, _ := f.reader(false, true)
	dk, _ := f.reader(true, true)
	return same(dv.other(), f.resultGrad()) && same(dq.other(), f.key()) && same(dk.other(), f.query())
}

// same reports whether two matrices are the same part of a tensor: all first elements, a row and a column are.
func same(a, b *Matrix) bool {
	if a.Tensor != b.Tensor {
		return false
	}
	rows, columns, batch := a.size()
	if r, c, n := b.size(); r != rows || c != columns || n != batch {
		return false
	}
	for i := range batch {
		for _, row := range []int{0, 1, rows - 1} {
			for _, column := range []int{0, 1, columns - 1} {
				if a.place(i, row, column) != b.place(i, row, column) {
					return false
				}
			}
		}
	}
	for row := range rows {
		if a.place(0, row, 0) != b.place(0, row, 0) {
			return false
		}
	}
	return true
}

func (m *Matrix) size() (rows, columns, batch int) {
	shape := m.Shape()
	rows, columns = shape[len(shape)-2], shape[len(shape)-1]
	if m.Turned {
		rows, columns = columns, rows
	}
	return rows, columns, product(shape[:len(shape)-2])
}

// place returns the place of an element in memory.
func (m *Matrix) place(batch, row, column int) int {
	shape := m.Shape()
	rank := len(shape)
	if m.Turned {
		row, column = column, row
	}
	var room [usualRank]int
	index := append(room[:0], shape...) // of that length
	index[rank-1], index[rank-2] = column, row
	for i := rank - 3; i >= 0; i-- {
		index[i] = batch % shape[i]
		batch /= shape[i]
	}
	return m.placeOf(index)
}

// separate gives the regions their own nodes.
func (f *finding) separate(g *Graph) {
	f.copyToRows(g)
	forward := &separation{finding: f, copies: map[*Tensor]*Tensor{}}
	reader, _ := f.reader(false, false)
	a := &Attention{Query: f.query(), Key: f.key(), Value: reader.other()}
	a.Weights = forward.tensor(reader.node.In[reader.operand].Tensor)
	a.Results = []Result{forward.result(g, reader)}
	forward.describe(g, a)
	if f.gradient == nil {
		return
	}
	a.Reach = forward.reach(a)
	backward := &separation{finding: f, copies: map[*Tensor]*Tensor{f.most: a.Most, f.total: a.Total}}
	b := &Attention{
		Query: f.query(), Key: f.key(), Value: f.value(), Gradient: f.resultGrad(), Reach: a.Reach,
	}
	dv, _ := f.reader(true, false)
	dq, _ := f.reader(false, true)
	dk, _ := f.reader(true, true)
	b.Weights = backward.tensor(dv.node.In[dv.operand].Tensor)
	b.Backward = &AttentionGradient{
		Queries: backward.tensor(dq.node.In[dq.operand].Tensor), Keys: backward.tensor(dk.node.In[dk.operand].Tensor),
	}
	b.Results = []Result{backward.result(g, dq), backward.result(g, dk), backward.result(g, dv)}
	backward.joinResults(g, b.Results)
	b.Backward.Product = backward.tensor(f.gradient.Out[0])
	b.Backward.Sum = backward.tensor(f.sum.Out[0])
	b.Backward.Summed = b.Backward.Sum.From.In[0].Tensor
	backward.describe(g, b)
	if f.sumsResult() && same(a.Value, b.Value) {
		b.Backward.Result = &a.Results[0]
	}
}

// separation makes the nodes of a region.
type separation struct {
	*finding
	copies map[*Tensor]*Tensor
	nodes  []*Node
}

func (s *separation) describe(g *Graph, a *Attention) {
	a.Product, a.Scores, a.Softmax = s.tensor(s.product.Out[0]), s.tensor(s.scores), s.tensor(s.softmax.result)
	a.Most, a.Total = s.tensor(s.most), s.tensor(s.total)
	for _, n := range s.nodes {
		n.work = a
	}
	g.Nodes = append(g.Nodes, s.nodes...)
}

// reach adds the node that tells the backward region which keys a row attends to.
func (s *separation) reach(a *Attention) *Tensor {
	n := &Node{
		Kind: Reduction, Op: Reach, In: []Operand{{Tensor: a.Softmax}}, Axes: []int{len(a.Softmax.Shape) - 1},
		work: a,
	}
	return n.makes(a.Softmax.Name+"/reach", onnxpb.TensorProto_INT32, a.Most.Shape)
}

// tensor returns the region's copy of a tensor, or the tensor itself if it reads that.
func (s *separation) tensor(t *Tensor) *Tensor {
	if c, ok := s.copies[t]; ok {
		return c
	}
	n := t.From
	_, inside := s.depends[t]
	inside = inside || slices.Contains(s.softmax.nodes, n) || s.sum != nil && n == s.sum
	if !inside && !s.inline(t) {
		return t
	}
	return s.copy(n)
}

// copy copies a node, and what the region computes of its operands.
func (s *separation) copy(n *Node) *Tensor {
	c := n.again()
	if n != s.product && n != s.gradient {
		for i, o := range c.In {
			if _, inside := s.depends[o.Tensor]; inside || n.Kind != Product {
				c.In[i].Tensor = s.tensor(o.Tensor)
			}
		}
	}
	s.copies[n.Out[0]] = c.Out[0]
	s.nodes = append(s.nodes, c)
	return c.Out[0]
}

// result gives a product to the region. If all readers see it transposed, the region writes it so.
func (s *separation) result(g *Graph, r reader) Result {
	old := r.node.Out[0]
	t := s.copy(r.node)
	result := Result{Product: t, Out: t, Scale: 1, Turned: r.operand == 1}
	if u, factor, ok := s.multiplied(old); ok && r.source&ofGradient != 0 {
		result.Views, result.Scale = u.node.In[u.operand].Views, factor
		s.copies[old] = t
		old, t = u.node.Out[0], s.copy(u.node)
		result.Out = t
	}
	prefix := s.order(old, result)
	if prefix > 0 {
		views := s.uses[old][0].node.In[s.uses[old][0].operand].Views[:prefix]
		c := &Node{Kind: Elementwise, Op: "Copy", In: []Operand{{t, views}}}
		s.nodes = append(s.nodes, c)
		result.Out = c.makes(old.Name+"/ordered", old.Type, views[prefix-1].To)
		result.Views = slices.Concat(result.Views, views)
	}
	for _, u := range s.uses[old] {
		o := &u.node.In[u.operand]
		*o = Operand{result.Out, slices.Clone(o.Views[prefix:])}
	}
	for i, o := range g.Outputs {
		if o.Tensor == old {
			g.Outputs[i].Tensor = result.Out
		}
	}
	return result
}

// multiplied returns the only reader of a result if it multiplies it with a constant, as if the queries were.
func (s *separation) multiplied(t *Tensor) (u use, factor float64, ok bool) {
	if s.outputs[t] || len(s.uses[t]) != 1 {
		return use{}, 0, false
	}
	u = s.uses[t][0]
	if u.node.Kind != Elementwise || u.node.Op != "Mul" || !u.node.In[u.operand].Reshaped() ||
		u.node.Out[0].Elements() != t.Elements() {
		return use{}, 0, false
	}
	factor, ok = small(u.node.In[1-u.operand])
	return u, factor, ok
}

// order returns how many views all readers of a result's tensor begin with, the last of which is a transpose. It is 0
// if there are none, or if the kernels cannot write that order: then it is the readers that transpose.
func (s *separation) order(t *Tensor, r Result) int {
	if s.outputs[t] {
		return 0
	}
	own := r.Views
	return commonOrder(s.uses[t], func(views []View) bool {
		r.Out, r.Views = &Tensor{Shape: views[len(views)-1].To}, slices.Concat(own, views)
		_, _, ok := r.Distances()
		return ok
	})
}

// commonOrder returns how many reshapes and transposes all readers begin with. The last of them is the last transpose
// that suits.
func commonOrder(readers []use, suits func(views []View) bool) (n int) {
	if len(readers) == 0 {
		return 0
	}
	views := readers[0].node.In[readers[0].operand].Views
	for i, v := range views {
		otherwise := func(u use) bool {
			other := u.node.In[u.operand].Views
			return len(other) <= i || !sameViews(other[i:i+1], views[i:i+1])
		}
		if v.Op != Reshape && v.Op != Transpose || slices.ContainsFunc(readers, otherwise) {
			break
		}
		if v.Op == Transpose && suits(views[:i+1]) {
			n = i + 1
		}
	}
	return n
}
