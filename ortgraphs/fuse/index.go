package fuse

import "slices"

// Source returns the index into what a view shows for an index into the view. An index has a number for each dimension,
// or what stands for it: the atoms of a layout, or a sum of variables. slice and reshape are the two steps that compute
// with it. A dimension of size 1 that is repeated has the zero value.
func Source[T any](v View, index []T, slice func(i T) T, reshape func(index []T) []T) []T {
	if v.Op == Reshape {
		return reshape(index)
	}
	from := make([]T, len(v.From))
	sourceInto(from, v, index, slice)
	return from
}

// sourceInto is Source for all views but those that reshape. It writes to from, which is cleared.
func sourceInto[T any](from []T, v View, index []T, slice func(i T) T) {
	switch v.Op {
	case Transpose:
		for i, j := range v.Perm {
			from[j] = index[i]
		}
	case Expand:
		for i, d := range v.From {
			if d != 1 {
				from[i] = index[i+len(v.To)-len(v.From)]
			}
		}
	case Slice:
		copy(from, index)
		from[v.Axis] = slice(index[v.Axis])
	}
}

// usualRank is the rank up to which placeOf allocates nothing.
const usualRank = 8

// placeOf returns the place in memory of an operand's element.
func (o Operand) placeOf(index []int) int {
	var rooms [2][usualRank]int
	for i, v := range slices.Backward(o.Views) {
		from := append(rooms[i%2][:0], v.From...) // of that length
		if v.Op == Reshape {
			at := flatten(index, v.To)
			for j, d := range slices.Backward(v.From) {
				from[j], at = at%d, at/d
			}
		} else {
			clear(from)
			sourceInto(from, v, index, func(i int) int { return v.Start + i*v.Step })
		}
		index = from
	}
	return flatten(index, o.Tensor.Shape)
}

func flatten(index, shape []int) int {
	at := 0
	for i, d := range shape {
		at = at*d + index[i]
	}
	return at
}
