package fuse

import "slices"

// Loops is how one kernel computes a region: it visits each place of a domain once, and computes there one element of
// each tensor. Axes are numbered from 0, the outermost first.
type Loops struct {
	// Sizes are those of the domain's axes.
	Sizes []int
	// Row has the axes of the reductions whose results the region uses; nil if there are none.
	Row []int
	// Along has the axes along which a Cumulation adds up, the outermost first; nil if there is none.
	Along []int
	// Columns are the reductions that are only outputs and run over all axes but Kept.
	Columns []*Node
	Kept    []int

	results  map[*Tensor][][]int
	operands map[*Node][][]int
}

// Loops returns how one kernel computes the region.
func (r *Region) Loops() *Loops {
	it := iterate(r.Nodes)
	l := &Loops{Columns: it.columns, results: map[*Tensor][][]int{}, operands: map[*Node][][]int{}}
	axis := map[int]int{}
	for i, x := range it.domain {
		axis[x] = i
		l.Sizes = append(l.Sizes, it.axes.size[x-1])
	}
	axes := func(atoms []int) (list []int) {
		for _, x := range it.axes.expand(atoms) {
			list = append(list, axis[x])
		}
		return list
	}
	dimensions := func(of layout) [][]int {
		list := make([][]int, len(of))
		for i, atoms := range of {
			list[i] = axes(atoms)
		}
		return list
	}
	l.Row, l.Kept, l.Along = axes(it.row), axes(it.kept), axes(it.along)
	slices.Sort(l.Row)
	slices.Sort(l.Kept)
	for t, of := range it.layouts {
		l.results[t] = dimensions(of)
	}
	for n, of := range it.operands {
		l.operands[n] = dimensions(of)
	}
	return l
}

// Of returns the axes of each dimension of a result of the region, the outermost first. A dimension of size 1 has none.
func (l *Loops) Of(t *Tensor) [][]int { return l.results[t] }

// Operand returns the axes of each dimension of a reduction's operand.
func (l *Loops) Operand(n *Node) [][]int { return l.operands[n] }
