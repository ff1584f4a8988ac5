package fuse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Work is what the kernel of a region does: Places, *Attention, *Depthwise, *Products or Biases, for instance. A pass
// sets nodes apart for a region by giving all of them the same Work.
type Work interface {
	// RoundsAsNodes reports whether the kernel rounds numbers in bf16 after each operation, as the plain nodes do. Then
	// both round almost equal numbers of f32, and seldom to different sides.
	RoundsAsNodes() bool

	// group divides the nodes that are set apart into those of each region.
	group(nodes []*Node) [][]*Node
	// complete sets the domain of a region, the number of its column sums, and what it reads or writes that no node
	// does.
	complete(r *Region)
	// ops describes the operations of a region.
	ops(r *Region) string
	// count adds to the ledger what only such regions have. It returns the number of kernels, apart from one for column
	// sums; 0 means that a library computes the region.
	count(l *Ledger, r *Region) (kernels int)
}

// Places is that of nodes which a kernel computes at the places of one domain: see [Loops].
type Places struct{ pointwise }

func (Places) group(nodes []*Node) [][]*Node { return [][]*Node{nodes} }

func (Places) complete(r *Region) {
	it := iterate(r.Nodes)
	r.ColumnSums = len(it.columns)
	for _, x := range it.domain {
		r.Domain = append(r.Domain, it.axes.size[x-1])
	}
}

// pointwise is what kernels have in common that compute one element of each node at a place.
type pointwise struct{}

func (pointwise) RoundsAsNodes() bool                  { return true }
func (pointwise) count(*Ledger, *Region) (kernels int) { return 1 }

// ops counts the operations, the most frequent first.
func (pointwise) ops(r *Region) string {
	count := map[string]int{}
	for _, n := range r.Nodes {
		count[n.Op]++
	}
	ops := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(ops, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	for i, op := range ops {
		if count[op] > 1 {
			ops[i] = fmt.Sprintf("%s %d", op, count[op])
		}
	}
	return strings.Join(ops, ", ")
}
