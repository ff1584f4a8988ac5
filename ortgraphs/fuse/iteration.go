package fuse

import "slices"

// maxRow is the largest number of elements along which a result of a reduction is used again in its own region: one row
// stays in the registers of a thread block.
const maxRow = 4096

// iteration is how one kernel computes the nodes of a region: over a domain, with one place in it for each element of
// each tensor.
type iteration struct {
	axes   *axes
	domain []int // atoms, the innermost last
	// row has the atoms of the reductions whose results the region uses. It is nil if there are none.
	row []int
	// along has the atoms along which a node adds up, the outermost first. It is nil if none does.
	along []int
	// kept has the atoms that remain of column sums, which are only outputs. columns are these nodes.
	kept    []int
	columns []*Node
	// layouts are those of the results, operands those of the reductions' operands.
	layouts  map[*Tensor]layout
	operands map[*Node]layout

	inside map[*Tensor]bool
	nodes  []*Node
	inline []*Node // which have no layouts
}

// iterate finds how one kernel can compute the nodes, which are in order. It returns nil if none can.
func iterate(nodes []*Node) *iteration {
	it := &iteration{
		axes: newAxes(), layouts: map[*Tensor]layout{}, operands: map[*Node]layout{}, inside: map[*Tensor]bool{},
	}
	for _, n := range nodes {
		if n.Inline {
			it.inline = append(it.inline, n)
			continue
		}
		it.nodes = append(it.nodes, n)
		it.inside[n.Out[0]] = true
	}
	largest := it.nodes[0]
	for _, n := range it.nodes {
		size, most := product(n.domain()), product(largest.domain())
		if size > most || size == most && largest.Out[0].repeats() && !n.Out[0].repeats() {
			largest = n
		}
	}
	seed := it.axes.whole(largest.domain())
	it.domain = it.axes.flat(seed)
	if largest.Kind == Reduction {
		it.operands[largest] = seed
	} else {
		it.layouts[largest.Out[0]] = seed
	}
	if !it.spread() || !it.consistent() {
		return nil
	}
	for _, n := range it.nodes {
		if n.Op == "Windows" { // then the part is an axis of its own
			it.axes.take(it.layouts[n.Out[0]][n.Axes[0]], n.Windows.Parts)
		}
	}
	it.domain = it.axes.expand(it.domain)
	if !it.cumulates() || !it.classify() {
		return nil
	}
	return it
}

// spread gives each tensor a layout, from node to node, until nothing changes. A node that is only partly determined,
// because it broadcasts what the region knows of it, gets the rest of the domain.
func (it *iteration) spread() bool {
	for {
		changed := false
		var open *partial
		for _, n := range it.nodes {
			c, p := it.visit(n)
			changed = changed || c
			if open == nil {
				open = p
			}
		}
		if changed {
			continue
		}
		if open == nil {
			return !slices.ContainsFunc(it.nodes, func(n *Node) bool { return it.layouts[n.Out[0]] == nil })
		}
		if !it.complete(open) {
			return false
		}
	}
}

// partial is a layout of which some dimensions are not known yet.
type partial struct {
	node    *Node
	layout  layout
	unknown []bool
}

func (it *iteration) complete(p *partial) bool {
	used := it.axes.flat(p.layout)
	rest := slices.DeleteFunc(it.axes.expand(it.domain), func(x int) bool { return slices.Contains(used, x) })
	for i, d := range p.node.domain() {
		if !p.unknown[i] {
			continue
		}
		var ok bool
		if p.layout[i], rest, ok = it.axes.take(rest, d); !ok {
			return false
		}
	}
	if p.node.Kind == Reduction {
		it.operands[p.node] = p.layout
	} else {
		it.layouts[p.node.Out[0]] = p.layout
	}
	return true
}

// visit finds layouts around one node. It returns whether it found one, or else what is known of the node's own.
func (it *iteration) visit(n *Node) (changed bool, open *partial) {
	if n.Kind == Reduction {
		return it.visitReduction(n)
	}
	out := n.Out[0]
	if it.layouts[out] == nil {
		p := &partial{n, make(layout, len(out.Shape)), make([]bool, len(out.Shape))}
		known, some := it.fromOperands(n, p)
		switch {
		case known:
			it.layouts[out], changed = p.layout, true
		case some:
			open = p
		}
	}
	if it.layouts[out] == nil || n.Kind == Join {
		return changed, open
	}
	for _, o := range n.In {
		shape := o.Shape()
		full := product(shape) == o.Tensor.Elements() && product(shape) == out.Elements()
		if it.layouts[o.Tensor] != nil || !full && !it.inside[o.Tensor] {
			continue
		}
		l := make(layout, len(shape))
		for i, d := range shape {
			if d > 1 {
				l[i] = it.layouts[out][i+len(out.Shape)-len(shape)]
			}
		}
		changed = it.root(o, l) || changed
	}
	return changed, open
}

func (it *iteration) visitReduction(n *Node) (changed bool, open *partial) {
	o, out := n.In[0], n.Out[0]
	if it.operands[n] == nil && it.layouts[o.Tensor] != nil {
		if l, ok := it.axes.through(it.layouts[o.Tensor], o.Views); ok {
			it.operands[n], changed = l, true
		}
	}
	if it.operands[n] == nil {
		if it.layouts[out] != nil {
			open = &partial{n, slices.Clone(it.layouts[out]), make([]bool, len(out.Shape))}
			for _, a := range n.Axes {
				open.layout[a], open.unknown[a] = nil, true
			}
		}
		return changed, open
	}
	if it.layouts[out] == nil {
		l := slices.Clone(it.operands[n])
		for _, a := range n.Axes {
			l[a] = nil
		}
		it.layouts[out], changed = l, true
	}
	if it.layouts[o.Tensor] == nil && (it.inside[o.Tensor] || product(o.Shape()) == o.Tensor.Elements()) {
		changed = it.root(o, it.operands[n]) || changed
	}
	return changed, nil
}

// fromOperands fills in what the operands say of the layout of a result: whether all of it is known, and whether
// anything is.
func (it *iteration) fromOperands(n *Node, p *partial) (known, some bool) {
	shape := n.Out[0].Shape
	for i, d := range shape {
		p.unknown[i] = d > 1
	}
	for _, o := range n.In {
		if n.Kind == Join || it.layouts[o.Tensor] == nil {
			continue
		}
		l, ok := it.axes.through(it.layouts[o.Tensor], o.Views)
		if !ok {
			continue
		}
		source := o.Shape()
		for i, atoms := range l {
			at := i + len(shape) - len(l)
			if source[i] == shape[at] && p.unknown[at] && len(atoms) > 0 {
				p.layout[at], p.unknown[at], some = atoms, false, true
			}
		}
	}
	return !slices.Contains(p.unknown, true), some
}

// root sets the layout of an operand's tensor from that of the operand.
func (it *iteration) root(o Operand, l layout) bool {
	back, ok := it.axes.back(l, o.Views)
	if ok {
		it.layouts[o.Tensor] = back
	}
	return ok
}

// consistent reports whether each node reads the results of the region at the places where they are computed.
func (it *iteration) consistent() bool {
	for _, n := range it.inline {
		if slices.ContainsFunc(n.In, func(o Operand) bool { return it.inside[o.Tensor] }) {
			return false
		}
	}
	for _, n := range it.nodes {
		want := it.operands[n]
		if n.Kind == Reduction && want == nil {
			return false
		}
		for _, o := range n.In {
			if !it.inside[o.Tensor] {
				continue
			}
			if n.Kind == Join {
				return false
			}
			if n.Kind != Reduction {
				want = it.layouts[n.Out[0]]
			}
			l, ok := it.axes.through(it.layouts[o.Tensor], o.Views)
			if !ok {
				return false
			}
			shape := o.Shape()
			for i, atoms := range l {
				expanded := it.axes.expand(atoms)
				if n.Kind != Reduction && (shape[i] == 1 || len(expanded) == 0) {
					continue
				}
				if !slices.Equal(expanded, it.axes.expand(want[i+len(want)-len(l)])) {
					return false
				}
			}
		}
	}
	return true
}

// classify divides the reductions into those along rows, whose results the region may use, and column sums. One kernel
// has one kind of row, the innermost axes of the domain, and column sums that keep one set of axes. These are completed
// in f32, so a reduction of integers is one along a row.
func (it *iteration) classify() bool {
	read := map[*Tensor]bool{}
	for _, n := range it.nodes {
		for _, o := range n.In {
			read[o.Tensor] = true
		}
	}
	type sum struct {
		node  *Node
		along []int // atoms, sorted
		whole bool  // over all of the domain
	}
	var last []sum
	for _, n := range it.nodes {
		if n.Kind != Reduction {
			continue
		}
		s := sum{node: n, whole: len(it.axes.flat(it.operands[n])) == len(it.domain)}
		elements := 1
		for _, a := range n.Axes {
			s.along = append(s.along, it.axes.expand(it.operands[n][a])...)
			elements *= n.In[0].Shape()[a]
		}
		if it.axes.elements(s.along) != elements { // it repeats what the region computes once
			return false
		}
		slices.Sort(s.along)
		switch {
		case !read[n.Out[0]]:
			last = append(last, s)
		case it.row == nil:
			it.row = s.along
		case !slices.Equal(it.row, s.along):
			return false
		}
	}
	innermost := func(atoms []int) bool {
		return len(it.domain) > 0 && slices.Contains(atoms, it.domain[len(it.domain)-1])
	}
	if it.row != nil && !innermost(it.row) {
		return false
	}
	for _, s := range last {
		rows := len(s.along) < len(it.domain) || !isFloat(s.node.Out[0].Type)
		if it.row == nil && s.whole && innermost(s.along) && rows && it.axes.elements(s.along) <= maxRow {
			it.row = s.along
		}
	}
	for _, s := range last {
		if it.row != nil && slices.Equal(s.along, it.row) {
			continue
		}
		alone := len(s.along) == len(it.domain) || !isFloat(s.node.Out[0].Type)
		if !s.whole || alone && len(it.nodes) > 1 {
			return false
		}
		kept := slices.DeleteFunc(slices.Clone(it.domain), func(x int) bool { return slices.Contains(s.along, x) })
		slices.Sort(kept)
		if it.columns != nil && !slices.Equal(kept, it.kept) {
			return false
		}
		it.kept, it.columns = kept, append(it.columns, s.node)
	}
	if it.row == nil {
		return true
	}
	return it.axes.elements(it.row) <= maxRow && (len(it.kept) == 0 || slices.Equal(it.kept, it.row))
}
