package fuse

import "slices"

// axes divides the dimensions of a region's domain into atoms, which are numbered from 1: the finest parts that its
// reshapes need. A dimension of 512 that a reshape divides into 8 x 64 becomes two atoms. Dividing an atom replaces it
// everywhere, so layouts are expanded before they are compared.
type axes struct {
	size  []int         // of atom i+1
	parts map[int][]int // of a divided atom: outer, inner
}

// layout gives the atoms of each dimension of a tensor, the outermost first. A dimension of size 1 has none, and
// neither has one along which a value of the domain is repeated.
type layout [][]int

func newAxes() *axes { return &axes{parts: map[int][]int{}} }

func (a *axes) add(size int) int {
	a.size = append(a.size, size)
	return len(a.size)
}

// whole is the layout of a shape with one new atom for each dimension.
func (a *axes) whole(shape []int) layout {
	l := make(layout, len(shape))
	for i, d := range shape {
		if d > 1 {
			l[i] = []int{a.add(d)}
		}
	}
	return l
}

// expand replaces divided atoms by their parts.
func (a *axes) expand(atoms []int) []int {
	var out []int
	for _, x := range atoms {
		if p, ok := a.parts[x]; ok {
			out = append(out, a.expand(p)...)
		} else {
			out = append(out, x)
		}
	}
	return out
}

func (a *axes) flat(l layout) []int {
	var out []int
	for _, atoms := range l {
		out = append(out, atoms...)
	}
	return a.expand(out)
}

func (a *axes) elements(atoms []int) int {
	n := 1
	for _, x := range a.expand(atoms) {
		n *= a.size[x-1]
	}
	return n
}

// take divides atoms so that the first of them have a number of elements. It returns them and the rest, or false if no
// division does that.
func (a *axes) take(atoms []int, elements int) (first, rest []int, ok bool) {
	atoms = a.expand(atoms)
	n := 1
	for i, x := range atoms {
		size := a.size[x-1]
		switch {
		case n == elements:
			return atoms[:i], atoms[i:], true
		case elements%(n*size) == 0:
			n *= size
			continue
		}
		need := elements / n
		if elements%n != 0 || size%need != 0 {
			return nil, nil, false
		}
		a.parts[x] = []int{a.add(need), a.add(size / need)}
		return a.take(atoms, elements)
	}
	return atoms, nil, n == elements
}

// regroup gives atoms to the dimensions of a shape, in their order.
func (a *axes) regroup(atoms []int, shape []int) (layout, bool) {
	l := make(layout, len(shape))
	for i, d := range shape {
		if d == 1 {
			continue
		}
		var ok bool
		if l[i], atoms, ok = a.take(atoms, d); !ok {
			return nil, false
		}
	}
	return l, len(a.expand(atoms)) == 0
}

// through returns the layout of an operand from that of its tensor.
func (a *axes) through(l layout, views []View) (layout, bool) {
	for _, v := range views {
		switch v.Op {
		case Transpose:
			out := make(layout, len(l))
			for i, j := range v.Perm {
				out[i] = l[j]
			}
			l = out
		case Expand:
			l = append(make(layout, len(v.To)-len(v.From)), l...)
		case Slice:
			return nil, false
		case Reshape:
			var ok bool
			if l, ok = a.reshape(l, v); !ok {
				return nil, false
			}
		}
	}
	return l, true
}

// reshape returns the layout after a reshape. Of a tensor that is repeated, only dimensions of size 1 may be added or
// removed.
func (a *axes) reshape(l layout, v View) (layout, bool) {
	repeated := false
	var large layout
	for i, d := range v.From {
		if d > 1 {
			large = append(large, l[i])
			repeated = repeated || len(a.expand(l[i])) == 0
		}
	}
	if !repeated {
		return a.regroup(a.flat(l), v.To)
	}
	out := make(layout, len(v.To))
	n := 0
	for i, d := range v.To {
		if d == 1 {
			continue
		}
		if n == len(large) || a.elements(large[n]) != d && len(a.expand(large[n])) > 0 {
			return nil, false
		}
		out[i] = large[n]
		n++
	}
	return out, n == len(large) && slices.Equal(beyondOne(v.From), beyondOne(v.To))
}

func beyondOne(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// back returns the layout of a tensor from that of its operand, the inverse of through.
func (a *axes) back(l layout, views []View) (back layout, ok bool) {
	ok = true
	for _, v := range slices.Backward(views) {
		if v.Op == Slice {
			return nil, false
		}
		l = Source(v, l, nil, func(l [][]int) (from [][]int) {
			from, ok = a.regroup(a.flat(l), v.From)
			return from
		})
		if !ok {
			return nil, false
		}
	}
	return l, true
}
