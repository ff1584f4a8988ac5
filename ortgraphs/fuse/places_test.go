package fuse

import (
	"fmt"
	"slices"
)

// CheckPlaces reports whether a kernel may keep the results of the region in registers: at each place of the domain,
// each node needs exactly the element of an operand that is computed at this place, and sums that it needs are sums
// along one row.
func CheckPlaces(r *Region) error {
	if _, ok := r.Work.(Places); !ok {
		return nil
	}
	it := iterate(r.Nodes)
	for _, n := range r.Nodes {
		if err := it.checkRow(n); err != nil {
			return err
		}
		out := it.layouts[n.Out[0]]
		if n.Kind == Reduction {
			out = it.operands[n]
		}
		for _, o := range n.In {
			if !it.inside[o.Tensor] {
				continue
			}
			element := Element(o)
			for place := range it.axes.elements(it.domain) {
				needed := element(it.index(out, place, n.domain()))
				computed := flatten(it.index(it.layouts[o.Tensor], place, o.Tensor.Shape), o.Tensor.Shape)
				if needed != computed {
					return fmt.Errorf("%s needs element %d of %s at place %d, where element %d is computed",
						n.Out[0].Name, needed, o.Tensor.Name, place, computed)
				}
			}
		}
	}
	return nil
}

// checkRow reports whether the reductions that a node reads run along the row, which is short and innermost.
func (it *iteration) checkRow(n *Node) error {
	for _, o := range n.In {
		from := o.Tensor.From
		if !it.inside[o.Tensor] || from.Kind != Reduction {
			continue
		}
		var along []int
		elements := 1
		for _, a := range from.Axes {
			along = append(along, it.axes.expand(it.operands[from][a])...)
			elements *= from.In[0].Shape()[a]
		}
		slices.Sort(along)
		if !slices.Equal(along, it.row) || elements > maxRow ||
			len(along) > 0 && !slices.Contains(along, it.domain[len(it.domain)-1]) ||
			slices.Contains(it.columns, from) {
			return fmt.Errorf("%s reads %s, which is no reduction along a row: atoms %v of %v", n.Out[0].Name,
				o.Tensor.Name, along, it.domain)
		}
	}
	return nil
}

// index returns the index into a tensor of a layout at a place of the domain.
func (it *iteration) index(l layout, place int, shape []int) []int {
	at := map[int]int{}
	for i := len(it.domain) - 1; i >= 0; i-- {
		size := it.axes.size[it.domain[i]-1]
		at[it.domain[i]], place = place%size, place/size
	}
	index := make([]int, len(shape))
	for i, atoms := range l {
		for _, x := range it.axes.expand(atoms) {
			index[i] = index[i]*it.axes.size[x-1] + at[x]
		}
	}
	return index
}

// Element returns a function from an index, to whose shape an operand is broadcast, to the element of its tensor.
func Element(o Operand) func(index []int) int {
	shape := o.Shape()
	first := make([]int, len(shape))
	sources := make([][]int, len(o.Views))
	for i, v := range o.Views {
		sources[i] = make([]int, len(v.From))
	}
	return func(index []int) int {
		at := first
		copy(at, index[len(index)-len(shape):])
		clearOnes(at, shape)
		for i := len(o.Views) - 1; i >= 0; i-- {
			v, source := o.Views[i], sources[i]
			switch v.Op {
			case Transpose:
				for i, j := range v.Perm {
					source[j] = at[i]
				}
			case Expand:
				copy(source, at[len(v.To)-len(v.From):])
				clearOnes(source, v.From)
			case Slice:
				copy(source, at)
				source[v.Axis] = v.Start + v.Step*at[v.Axis]
			case Reshape:
				Unflatten(flatten(at, v.To), v.From, source)
			}
			at = source
		}
		return flatten(at, o.Tensor.Shape)
	}
}

// clearOnes sets the index of dimensions of size 1 to 0.
func clearOnes(index, shape []int) {
	for i, d := range shape {
		if d == 1 {
			index[i] = 0
		}
	}
}

// Unflatten sets the index of an element of a shape.
func Unflatten(element int, shape, index []int) {
	for i := len(shape) - 1; i >= 0; i-- {
		index[i], element = element%shape[i], element/shape[i]
	}
}
