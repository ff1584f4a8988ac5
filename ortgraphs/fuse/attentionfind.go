package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// softmax is a softmax over the last dimension, as Lower writes it.
type softmax struct {
	scores, most, total, result *Tensor
	nodes                       []*Node
}

// softmaxOf returns the softmax that ends with a node.
func softmaxOf(n *Node, uses map[*Tensor][]use) (s softmax, ok bool) {
	if n.Op != "Div" || n.Kind != Elementwise || !n.In[0].Plain() || !n.In[1].Plain() {
		return s, false
	}
	power, sum := n.In[0].Tensor.From, n.In[1].Tensor.From
	if power == nil || sum == nil || power.Op != "Exp" || sum.Op != "sum" || !overLast(sum) ||
		sum.In[0].Tensor != power.Out[0] || !power.In[0].Plain() {
		return s, false
	}
	difference := power.In[0].Tensor.From
	if difference == nil || difference.Op != "Sub" || !difference.In[0].Plain() || !difference.In[1].Plain() {
		return s, false
	}
	largest := difference.In[1].Tensor.From
	scores := difference.In[0].Tensor
	if largest == nil || largest.Op != "max" || !overLast(largest) || largest.In[0].Tensor != scores {
		return s, false
	}
	only := func(t *Tensor, readers int) bool { return len(uses[t]) == readers }
	if !only(power.Out[0], 2) || !only(sum.Out[0], 1) || !only(difference.Out[0], 1) || !only(largest.Out[0], 1) {
		return s, false
	}
	s = softmax{scores, largest.Out[0], sum.Out[0], n.Out[0], []*Node{largest, difference, power, sum, n}}
	return s, len(scores.Shape) >= 3
}

// overLast reports whether a reduction runs over the last dimension of a tensor.
func overLast(n *Node) bool {
	return n.Kind == Reduction && n.In[0].Plain() && len(n.Axes) == 1 && n.Axes[0] == len(n.In[0].Shape())-1
}

// source says which products a tensor depends on.
type source int

const (
	ofScores   source = 1 << iota // Q K'
	ofGradient                    // dO V'
)

// finding is the search for the attention around a softmax.
type finding struct {
	softmax
	element shapes.Type // of the matrices
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	// depends has the tensors with an element for each place that depend on a product.
	depends map[*Tensor]source

	product, gradient *Node // Q K' and dO V'
	sum               *Node // along each row, of the gradient
	readers           []reader
}

// reader is a product that reads a matrix of all places.
type reader struct {
	node    *Node
	operand int
	turned  bool // it sums over queries
	source  source
}

func (f *finding) elements() int { return f.scores.Elements() }

func (f *finding) rowsAndColumns() (int, int) {
	rank := len(f.scores.Shape)
	return f.scores.Shape[rank-2], f.scores.Shape[rank-1]
}

// inline reports whether a region computes the tensor at each place, rather than reading it. It reads the hashes of
// rows, of which all heads together may have as many as a head has places.
func (f *finding) inline(t *Tensor) bool {
	rows, columns := f.rowsAndColumns()
	return t.From != nil && t.From.Kind == Elementwise && !t.From.longRemainder() && t.Elements() >= rows*columns
}

// productsOf returns the products of all places that a tensor depends on. It returns false if it depends on anything
// else of that size.
func (f *finding) productsOf(t *Tensor, found []*Node) ([]*Node, bool) {
	if t.From != nil && t.From.Kind == Product && t.Elements() == f.elements() {
		if !slices.Contains(found, t.From) {
			found = append(found, t.From)
		}
		return found, true
	}
	if f.inline(t) {
		for _, o := range t.From.In {
			var ok bool
			if found, ok = f.productsOf(o.Tensor, found); !ok {
				return found, false
			}
		}
		return found, true
	}
	return found, t.Constant || t.Elements()*2 <= f.elements()
}

func (f *finding) find() bool {
	rows, columns := f.rowsAndColumns()
	list, ok := f.productsOf(f.scores, nil)
	if !ok || len(list) != 1 || rows == 1 || columns == 1 {
		return false
	}
	f.product = list[0]
	if !f.suits(f.product.Out[0]) || !f.spread(f.product.Out[0], ofScores) {
		return false
	}
	if f.gradient != nil && !f.suits(f.gradient.Out[0]) {
		return false
	}
	return f.classify()
}

// suits reports whether a product is a matrix of queries and keys.
func (f *finding) suits(t *Tensor) bool {
	rank := len(t.Shape)
	rows, columns := f.rowsAndColumns()
	return t.Type == f.element && rank >= 2 && t.Shape[rank-2] == rows && t.Shape[rank-1] == columns
}

// spread visits all readers of a tensor that depends on a product.
func (f *finding) spread(t *Tensor, from source) bool {
	if f.depends[t]|from == f.depends[t] {
		return true
	}
	f.depends[t] |= from
	if f.outputs[t] {
		return false
	}
	for _, u := range f.uses[t] {
		o := u.node.In[u.operand]
		out := u.node.Out[0]
		switch {
		case slices.Contains(f.nodes, u.node) && u.node.Kind == Reduction:
		case u.node.Kind == Product:
			turned, ok := orientation(o, u.node.Transposed[u.operand])
			if !ok {
				return false
			}
			f.readers = slices.DeleteFunc(f.readers,
				func(r reader) bool { return r.node == u.node && r.operand == u.operand })
			f.readers = append(f.readers, reader{u.node, u.operand, turned == (u.operand == 0), f.depends[t]})
		case u.node.Kind == Reduction:
			if f.sum != nil && f.sum != u.node || u.node.Op != "sum" || !overLast(u.node) || !f.spreadSum(u.node) {
				return false
			}
		case u.node.Kind == Elementwise && out.Elements() == f.elements() && straight(o):
			if !f.operands(u.node) || !f.spread(out, f.depends[t]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// spreadSum visits the readers of the sums along rows.
func (f *finding) spreadSum(n *Node) bool {
	f.sum = n
	t := n.Out[0]
	return !f.outputs[t] && !slices.ContainsFunc(f.uses[t], func(u use) bool {
		return u.node.Kind != Elementwise || u.node.Out[0].Elements() != f.elements()
	})
}

// operands visits the other operands of a node, which may depend on the gradient's product.
func (f *finding) operands(n *Node) bool {
	for _, o := range n.In {
		if f.sum != nil && o.Tensor == f.sum.Out[0] || slices.Contains(f.nodes, n) {
			continue
		}
		list, ok := f.productsOf(o.Tensor, nil)
		if !ok {
			return false
		}
		for _, p := range list {
			if p == f.product {
				continue
			}
			if f.gradient == nil {
				f.gradient = p
			}
			if f.gradient != p || !f.spread(p.Out[0], ofGradient) {
				return false
			}
		}
	}
	return true
}

// straight reports whether an operand has the elements of its tensor in their order.
func straight(o Operand) bool {
	turned, ok := orientation(o, false)
	return ok && !turned
}

// orientation reports whether an operand has the elements of its tensor in their order, or with the last two dimensions
// exchanged.
func orientation(o Operand, exchanged bool) (turned, ok bool) {
	if len(o.Shape()) < 2 {
		return false, false
	}
	r, ok := orderOf(o)
	if !ok {
		return false, false
	}
	asIs, swapped := r.asIs(), r.swapped()
	if exchanged {
		asIs, swapped = swapped, asIs
	}
	return !asIs && swapped, asIs || swapped
}
