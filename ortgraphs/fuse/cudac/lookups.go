package cudac

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Caches is what the threads of a kernel ask of the caches. What neighbouring threads read from neighbouring places is
// one line.
type Caches struct {
	// Lines is the number of lines of 128 bytes that the caches of the multiprocessors look up.
	Lines float64
	// Sectors is the number of sectors of 32 bytes that warps move, each once for a warp.
	Sectors float64
}

const (
	warp       = 32
	lineSize   = 128
	sectorSize = 32
)

// meter counts what a warp of the first row asks of the caches.
type meter struct {
	lines   float64
	sectors map[sector]bool
}

type sector struct {
	tensor *fuse.Tensor
	number int
}

// lookUp counts the lines and sectors of an element at each place. What all rows read stays in the multiprocessor.
func (b *body) lookUp(t *fuse.Tensor, at affine, consecutive bool) {
	bytes, v := max(1, int(shapes.ElementSize(t.Type))), b.shape.V
	lanes := min(warp, max(1, b.shape.C/v))
	if b.meter.sectors == nil {
		b.meter.sectors = map[sector]bool{}
	}
	place := b.placeOf(at)
	if b.square { // neighbouring threads read and write neighbouring elements
		place = func(column int) int { return column }
	}
	for i := range v {
		lines := make([]int, lanes)
		for lane := range lanes {
			lines[lane] = place(lane*v+i) * bytes / lineSize
		}
		slices.Sort(lines)
		b.meter.lines += float64(len(slices.Compact(lines)))
		if consecutive { // one load has all elements of a vector
			break
		}
	}
	if !b.advances(at) {
		return
	}
	last := sector{}
	for column := range lanes * v {
		if one := (sector{t, place(column) * bytes / sectorSize}); one != last {
			b.meter.sectors[one], last = true, one
		}
	}
}

// caches is what all warps ask of the caches.
func (b *body) caches() Caches {
	warps := float64(b.shape.R) * float64(b.shape.C) / float64(min(warp*b.shape.V, b.shape.C))
	return Caches{Lines: warps * b.meter.lines, Sectors: warps * float64(len(b.meter.sectors))}
}

// placeOf returns the place of an element by the column, in the first row.
func (b *body) placeOf(at affine) func(column int) int {
	plain := true
	for name := range at.factors {
		_, divided := b.places.division(name)
		plain = plain && !divided
	}
	cols := b.shape.cols
	if plain && len(cols) == 1 {
		factor := at.factors[axisName(cols[0])]
		return func(column int) int { return at.constant + factor*column }
	}
	names, values := make([]string, len(cols)), map[string]int{}
	for i, axis := range cols {
		names[i] = axisName(axis)
	}
	return func(column int) int {
		for i := len(cols) - 1; i >= 0; i-- {
			size := b.shape.sizes[cols[i]]
			values[names[i]] = column % size
			column /= size
		}
		return b.evaluate(at, values)
	}
}

// evaluate is a value at a place.
func (b *body) evaluate(e affine, axes map[string]int) int {
	sum := e.constant
	for name, factor := range e.factors {
		value, ok := axes[name]
		if !ok {
			if q, divided := b.places.division(name); divided {
				if value = b.evaluate(q.value, axes); q.rest {
					value %= q.divisor
				} else {
					value /= q.divisor
				}
			}
		}
		sum += factor * value
	}
	return sum
}
