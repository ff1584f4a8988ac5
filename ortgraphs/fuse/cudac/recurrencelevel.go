package cudac

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// level is what blocks compute between two meetings. Its places are rows of units: a block computes some units of all
// rows, and each element that is written belongs to one unit, as column unit + i * width of its tensor.
type level struct {
	of       *recurrence
	writes   []*fuse.Tensor // each once
	width    int            // the number of units
	units    int            // of a block
	products []*recurrentProduct
	passed   []passedValue // which it reads
}

// passedValue is an element of a value that a step passes on.
type passedValue struct {
	carry int
	at    affine
}

// recurrentProduct is a matrix product of a level: those of its columns that belong to the units of a block.
type recurrentProduct struct {
	level *level
	node  *fuse.Node
	// groups are the multiples of the level's width at which its columns begin.
	groups []int
	// inner is the number of terms, rounded up to a multiple of 4, and columns that of a block's columns, rounded up to
	// a multiple of what a warp computes: tile[0] rows and tile[1] columns.
	inner, columns int
	tile           [2]int
	split          int // in how many parts the terms are added
	// weights, staged and sums are places in shared memory. Those of weights that are not resident are in the scratch
	// memory.
	resident              bool
	weights, staged, sums int
	chunk                 int // of rows at a time
}

// newLevel finds the units of a level, and the columns of products that they need.
func (k *recurrence) newLevel(at int) (*level, error) {
	l := &level{of: k}
	for _, t := range k.written() {
		if k.at[t] == at && !slices.Contains(l.writes, t) {
			l.writes = append(l.writes, t)
			l.width = gcd(l.width, t.Shape[len(t.Shape)-1])
		}
	}
	seen := map[*fuse.Tensor]bool{}
	for _, t := range l.writes {
		l.pieces(t, seen)
	}
	l.units = ceil(l.width, k.blocks)
	e := l.elements()
	for _, t := range l.writes { // which finds the products
		if err := e.each(t, func(string, affine) {}); err != nil {
			return nil, err
		}
	}
	for _, p := range l.products {
		p.inner = ceil(p.node.Terms(), 4) * 4
		p.fit(len(p.groups)*l.units, k.rows)
	}
	return l, nil
}

// pieces makes the width one of which all pieces of joined tensors are multiples.
func (l *level) pieces(t *fuse.Tensor, seen map[*fuse.Tensor]bool) {
	n := t.From
	if n == nil || seen[t] || n.Kind == fuse.Product {
		return
	}
	seen[t] = true
	for _, o := range n.In {
		if shape := o.Shape(); n.Kind == fuse.Join && len(shape) > 0 {
			l.width = gcd(l.width, shape[len(shape)-1])
		}
		l.pieces(o.Tensor, seen)
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fit chooses what a warp computes at a time: 16 sums, of as many columns as there are, up to 4. With few of them, the
// warps divide the terms.
func (p *recurrentProduct) fit(columns, rows int) {
	p.tile = [2]int{4, 4}
	switch {
	case columns == 1:
		p.tile = [2]int{16, 1}
	case columns < 4:
		p.tile = [2]int{8, 2}
	}
	for p.tile[0] > 1 && p.tile[0] >= 2*rows {
		p.tile[0] /= 2
	}
	p.columns = ceil(columns, p.tile[1]) * p.tile[1]
	p.split = 1
	tasks := ceil(rows, p.tile[0]) * p.columns / p.tile[1]
	for 2*p.split*tasks <= recurrenceThreads/32 && 2*p.split*128 <= p.inner {
		p.split *= 2
	}
}

// bandRows are all rows, rounded up to a multiple of those of a warp.
func (p *recurrentProduct) bandRows(rows int) int { return ceil(rows, p.tile[0]) * p.tile[0] }

// sumFloats is the size of its sums in shared memory. What follows them is read in vectors of four.
func (p *recurrentProduct) sumFloats(rows int) int {
	return ceil(p.split*p.bandRows(rows)*p.columns, 4) * 4
}

// group returns the number of a product's group of columns, which it adds if the level has not needed it before.
func (l *level) group(n *fuse.Node, column int) (p *recurrentProduct, group int) {
	i := slices.IndexFunc(l.products, func(p *recurrentProduct) bool { return p.node == n })
	if i < 0 {
		i = len(l.products)
		l.products = append(l.products, &recurrentProduct{level: l, node: n})
	}
	p = l.products[i]
	if group = slices.Index(p.groups, column); group < 0 {
		group = len(p.groups)
		p.groups = append(p.groups, column)
	}
	return p, group
}

// place is that of the first element of a unit in a tensor with so many columns.
func (l *level) place(columns int) affine {
	if l.of.rows == 1 {
		columns = 0
	}
	return variable("a0", columns).plus(variable("a1", 1))
}

// column returns the column of unit 0 if an element of a tensor with so many columns is in row a0 and belongs to unit
// a1. Otherwise ok is false.
func (l *level) column(at affine, columns int) (first int, ok bool) {
	rest := at.plus(l.place(columns).times(-1))
	return rest.constant, len(rest.factors) == 0 && rest.constant >= 0 && rest.constant%l.width == 0
}

// load writes the loop that copies the block's columns of the weights, each with its terms in a row.
func (p *recurrentProduct) load(w *writer) {
	k, l := p.level.of, p.level
	w.line("for (int i = threadIdx.x; i < %d; i += %d) {", p.columns*p.inner, recurrenceThreads)
	w.line("const int k = i %% %d, own = i / %d, unit = block * %d + own %% %d;", p.inner, p.inner, l.units, l.units)
	w.line("int n = -1;")
	for i, column := range p.groups {
		w.line("if (own / %d == %d) n = unit + %d;", l.units, i, column)
	}
	to := fmt.Sprintf("memory[%d + i]", p.weights)
	if !p.resident {
		to = fmt.Sprintf("scratch[%d + block * %d + i]", p.weights, p.columns*p.inner)
	}
	shape, o := p.node.Out[0].Shape, p.node.In[1]
	places := k.places(map[string]int{"k": p.node.Terms(), "n": shape[len(shape)-1]})
	index := []affine{variable("k", 1), variable("n", 1)}
	if p.node.Transposed[1] {
		index[0], index[1] = index[1], index[0]
	}
	weight := k.given(places, slices.Index(k.of.Step.Inputs, o.Tensor), places.source(index, o))
	w.define(places)
	w.line("%s = k < %d && n >= 0 && unit < %d ? %s : 0.f;", to, p.node.Terms(), l.width, weight)
	w.line("}")
}

// check returns an error if a kernel cannot compute the product.
func (p *recurrentProduct) check() error {
	k, n := p.level.of, p.node
	in := k.of.Step.Inputs
	a, w := n.In[0], n.In[1]
	source := slices.Index(in, w.Tensor)
	shape := a.Shape()
	switch {
	case a.Tensor.From == nil && !slices.Contains(in, a.Tensor):
		return unsupported("%s has a first factor that the step makes itself", n.Out[0].Name)
	case n.Transposed[0] || !a.Reshaped() || len(n.In) > 2 || !isFloat(a.Tensor.Type) ||
		product(shape) != k.rows*shape[len(shape)-1]:
		return unsupported("%s has another first factor than rows", n.Out[0].Name)
	case len(w.Shape()) != 2 || source < k.of.Carries+k.of.Sequences || !isFloat(w.Tensor.Type):
		return unsupported("%s has another second factor than a matrix that is the same in all steps", n.Out[0].Name)
	}
	return nil
}

// meets reports whether blocks have to meet after a step: another block reads what a step has passed on, or still reads
// what the next one is about to overwrite.
func (k *recurrence) meets() bool {
	for _, l := range k.levels {
		for _, p := range l.products {
			if i := slices.Index(k.of.Step.Inputs, p.node.In[0].Tensor); i >= 0 && i < k.of.Carries {
				return true
			}
		}
		for _, v := range l.passed {
			t := k.of.Step.Outputs[v.carry].Tensor
			columns := t.Shape[len(t.Shape)-1]
			if _, own := l.column(v.at, columns); !own || k.levels[k.at[t]].width != l.width {
				return true
			}
		}
	}
	return false
}
