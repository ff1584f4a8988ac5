package fuse

// Source returns the index into what a view shows for an index into the view. An index has a number for each dimension,
// or what stands for it: the atoms of a layout, or a sum of variables. slice and reshape are the two steps that compute
// with it. A dimension of size 1 that is repeated has the zero value.
func Source[T any](v View, index []T, slice func(i T) T, reshape func(index []T) []T) []T {
	from := make([]T, len(v.From))
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
	case Reshape:
		from = reshape(index)
	}
	return from
}

func flatten(index, shape []int) int {
	at := 0
	for i, d := range shape {
		at = at*d + index[i]
	}
	return at
}
