package cudac

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// shape is how threads divide the places of a region: into rows and columns. Neighbouring threads compute neighbouring
// columns.
type shape struct {
	sizes      []int // of the axes
	rows, cols []int // axes, the outermost first
	// R and C are the numbers of rows and columns. Each thread computes V consecutive columns at once.
	R, C, V int
	// reduces says that rows are reduced: then one row is in the registers of one group of threads.
	reduces bool
}

const (
	blockThreads = 256
	// minColumns is the number of columns, if there are so many, of a region that reduces nothing.
	minColumns = 128
)

// newShape divides the places of a region.
func newShape(r *fuse.Region, l *fuse.Loops) shape {
	s := shape{sizes: l.Sizes}
	if len(s.sizes) == 0 { // one place
		s.sizes = []int{1}
	}
	switch {
	case len(l.Row) > 0:
		s.cols, s.reduces = l.Row, true
	case len(l.Columns) > 0:
		s.cols = l.Kept
	default:
		for i, elements := len(s.sizes)-1, 1; i >= 0 && elements < minColumns; i-- {
			s.cols = slices.Insert(s.cols, 0, i)
			elements *= s.sizes[i]
		}
	}
	for i := range s.sizes {
		if !slices.Contains(s.cols, i) {
			s.rows = append(s.rows, i)
		}
	}
	s.R, s.C = s.places(s.rows), s.places(s.cols)
	s.V = s.vector(r)
	return s
}

func (s shape) places(axes []int) int {
	n := 1
	for _, a := range axes {
		n *= s.sizes[a]
	}
	return n
}

// vector returns how many columns a thread computes at once: as many as one load of 16 bytes reads.
func (s shape) vector(r *fuse.Region) int {
	if len(s.cols) == 0 {
		return 1
	}
	innermost := s.sizes[s.cols[len(s.cols)-1]]
	for _, t := range slices.Concat(r.In, r.Out) {
		large := t.Elements()*8 > s.R*s.C
		if isShort(t.Type) && large && innermost%8 == 0 && (!s.reduces || s.C%256 == 0) && 8*s.reads(r) <= maxHeld {
			return 8
		}
	}
	for _, v := range []int{4, 2} {
		if innermost%v == 0 {
			return v
		}
	}
	return 1
}

// maxHeld is the number of elements that a thread reads at once, in vectors of 8, and keeps in registers.
const maxHeld = 128

// reads returns how many elements the nodes read from memory at each place. A convolution in each channel reads as many
// as its kernel has.
func (s shape) reads(r *fuse.Region) (count int) {
	for _, n := range r.Nodes {
		for _, o := range n.In {
			if slices.Contains(r.In, o.Tensor) && o.Tensor.Elements()*8 > s.R*s.C {
				count++
			}
		}
	}
	return count
}
