package record

import (
	"cmp"
	"math"
	"sort"
)

// maxBins bounds the bins of a Curve that does not say otherwise. Each is drawn as two points.
const maxBins = 512

// Curve is the course of a number over the steps, in bins of equal numbers of steps. Each bin has its extremes, so that
// the spike of a single step stays. The zero value is empty.
type Curve struct {
	Bins []Bin
	// Most bounds the bins: an even number, or 0 for 512.
	Most int
	// Width is the number of values of a bin; the last may have fewer.
	Width int
	// NotFinite counts the values that were left out.
	NotFinite int
}

// Bin is a piece of a Curve.
type Bin struct {
	First, Last, MinAt, MaxAt int64 // steps
	Min, Max, Sum             float64
	N                         int
}

// Point is a value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Add appends a value. Steps increase.
func (c *Curve) Add(step int64, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.NotFinite++
		return
	}
	c.Bins, c.Width = grow(c.Bins, max(1, c.Width), cmp.Or(c.Most, maxBins), Bin{step, step, step, step, v, v, v, 1})
}

// joinable is a piece of a course, of one value or more.
type joinable[P any] interface {
	values() int
	join(next P) P // with the one after it
}

// grow appends a piece of one value to pieces of width values each, of which the last may have fewer. If they are as
// many as most, it joins them two by two first. It returns the pieces and their width.
func grow[P joinable[P]](pieces []P, width, most int, one P) ([]P, int) {
	if last := len(pieces) - 1; last >= 0 && pieces[last].values() < width {
		pieces[last] = pieces[last].join(one)
		return pieces, width
	}
	if len(pieces) == most {
		for i := range most / 2 {
			pieces[i] = pieces[2*i].join(pieces[2*i+1])
		}
		pieces, width = pieces[:most/2], 2*width
	}
	return append(pieces, one), width
}

func (b Bin) values() int { return b.N }

// join is a bin with the one after it.
func (b Bin) join(next Bin) Bin {
	if next.Min < b.Min {
		b.Min, b.MinAt = next.Min, next.MinAt
	}
	if next.Max > b.Max {
		b.Max, b.MaxAt = next.Max, next.MaxAt
	}
	b.Last, b.Sum, b.N = next.Last, b.Sum+next.Sum, b.N+next.N
	return b
}

// Mean is the mean of the values of the bin.
func (b Bin) Mean() float64 { return b.Sum / float64(b.N) }

// Within returns the course from one step to another, both included, in at most so many pieces of equal numbers of
// steps. A bin belongs to the piece of its last step.
func (c *Curve) Within(from, to int64, most int) []Bin {
	begin := sort.Search(len(c.Bins), func(i int) bool { return c.Bins[i].Last >= from })
	end := sort.Search(len(c.Bins), func(i int) bool { return c.Bins[i].First > to })
	if begin >= end || most < 1 {
		return nil
	}
	width := max(1, (float64(to)-float64(from)+1)/float64(most))
	var pieces []Bin
	at := -1
	for _, b := range c.Bins[begin:end] {
		piece := min(most-1, max(0, int((float64(b.Last)-float64(from))/width)))
		if piece == at {
			pieces[len(pieces)-1] = pieces[len(pieces)-1].join(b)
		} else {
			pieces, at = append(pieces, b), piece
		}
	}
	return pieces
}

// Points returns the extremes of each bin in the order of their steps.
func (c *Curve) Points() []Point {
	var points []Point
	for _, b := range c.Bins {
		low, high := Point{b.MinAt, b.Min}, Point{b.MaxAt, b.Max}
		switch {
		case low == high:
			points = append(points, low)
		case low.Step < high.Step:
			points = append(points, low, high)
		default:
			points = append(points, high, low)
		}
	}
	return points
}

// Means returns the mean of each bin at its last step.
func (c *Curve) Means() []Point {
	points := make([]Point, len(c.Bins))
	for i, b := range c.Bins {
		points[i] = Point{b.Last, b.Mean()}
	}
	return points
}
