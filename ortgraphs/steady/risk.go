package steady

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Threads is the largest number of threads that a rewritten graph has the same bits with.
const Threads = 16

const (
	align  = 16      // columns that a thread has at least
	worth  = 1 << 14 // products that are worth a thread, at most; the library takes four times as many
	strips = 128     // products that are added before the sum is rounded to memory, with many columns
)

// product is a matrix product as it is computed: batch products of m by k and k by n.
type product struct {
	batch, m, n, k int64
	left, right    bool // transposed
}

// products returns the ways in which the library may compute a node.
func products(n *shapes.Node) (list []product) {
	a, b, ok := n.MatMulShapes()
	if !ok {
		return nil
	}
	p := product{
		batch: 1, m: a[len(a)-2], n: b[len(b)-1], k: a[len(a)-1], left: n.Integer("transA", 0) != 0,
		right: n.Integer("transB", 0) != 0,
	}
	rows := p.m
	for i := 3; i <= max(len(a), len(b)); i++ {
		size := func(s []int64) int64 {
			if i > len(s) {
				return 1
			}
			return s[len(s)-i]
		}
		p.batch *= max(size(a), size(b))
		rows *= size(a)
	}
	if list = []product{p}; rows != p.m { // with one right operand for all, they may be one product
		list = append(list, product{1, rows, p.n, p.k, p.left, p.right})
	}
	return list
}

// unsteady reports whether the bits depend on the number of threads.
func (p product) unsteady() bool {
	if p.left || p.batch == 0 || p.m*p.n*p.k == 0 {
		return false
	}
	threads := (min(Threads, p.m*p.n*p.k/worth+1) + p.batch - 1) / p.batch
	if p.n > p.m {
		blocks := (p.n + align - 1) / align
		threads = min(threads, blocks)
		return p.m > 1 && min(strip(blocks/threads*align, p.k), p.k) != min(strip(p.n, p.k), p.k)
	}
	threads = min(threads, p.m)
	return threads > 1 && (p.m/threads == 1 || p.n == 1 && !p.right)
}

// strip is the number of products that are added before the sum is rounded to memory.
func strip(columns, k int64) int64 {
	s, width := int64(strips), int64(strips)
	for columns < k && width > align && width/2 >= columns {
		s, width = 2*s, width/2
	}
	return s
}

// sumUnsteady reports whether the bits of a sum or mean of a tensor over some axes depend on the number of threads.
func sumUnsteady(shape []int64, axes []int64) bool {
	type group struct {
		reduced bool
		size    int64
	}
	var groups []group // of neighbouring axes
	for i, size := range shape {
		reduced := slices.Contains(axes, int64(i))
		switch n := len(groups); {
		case size == 1:
		case n > 0 && groups[n-1].reduced == reduced:
			groups[n-1].size *= size
		default:
			groups = append(groups, group{reduced, size})
		}
	}
	switch {
	case len(groups) != 3:
		return false
	case groups[1].reduced:
		return groups[0].size < Threads
	}
	return groups[1].size < Threads
}
