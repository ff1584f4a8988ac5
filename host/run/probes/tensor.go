package probes

import (
	"fmt"
	"math"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/picture"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// bins is the number of bins of a histogram.
const bins = 64

// measure fills in what the values say.
func measure(p *event.Probe, values []float32) {
	low, high, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
	finite := func(take func(v float64)) {
		for _, v := range values {
			if v := float64(v); !math.IsNaN(v) && !math.IsInf(v, 0) {
				take(v)
			}
		}
	}
	squares := 0.0
	finite(func(v float64) {
		n++
		low, high, sum, squares = min(low, v), max(high, v), sum+v, squares+v*v
	})
	if p.NotFinite = len(values) - n; n == 0 {
		nan := math.NaN()
		p.Mean, p.Std, p.Min, p.Max = nan, nan, nan, nan
		return
	}
	p.Min, p.Max, p.Mean, p.Norm = low, high, sum/float64(n), math.Sqrt(squares)
	apart := 0.0
	finite(func(v float64) { apart += (v - p.Mean) * (v - p.Mean) })
	p.Std = math.Sqrt(apart / float64(n))
	count := bins
	if low == high {
		count, high = 1, math.Nextafter(high, math.Inf(1))
	}
	p.Edges, p.Counts = make([]float64, count+1), make([]int, count)
	for i := range p.Edges {
		p.Edges[i] = low + (high-low)*float64(i)/float64(count)
	}
	p.Edges[count] = high
	finite(func(v float64) {
		i := min(count-1, int((v-low)/(high-low)*float64(count)))
		for i > 0 && v < p.Edges[i] { // by rounding
			i--
		}
		for i < count-1 && v >= p.Edges[i+1] {
			i++
		}
		p.Counts[i]++
	})
}

// array is a part of a tensor.
type array struct {
	shape  []int
	values []float32
}

// is returns an error unless an array has the shape that a bundle declares, in a batch of so many rows. A graph may
// give another one: its declarations are not proved before it runs.
func (a array) is(spec manifest.Shape, batch int) error {
	same, all := len(a.shape) == len(spec), 1
	for axis := 0; same && axis < len(spec); axis++ {
		size, d := a.shape[axis], spec[axis]
		switch {
		case d.Symbol == manifest.BatchSymbol:
			same = size == batch
		case d.Symbol == "":
			same = size == d.Size
		}
		all *= size
	}
	if !same || all != len(a.values) {
		return fmt.Errorf("the graph gave %d values of the shape %v, and the bundle declares %v for %s", len(a.values),
			a.shape, spec, units.Count(batch, "row"))
	}
	return nil
}

// cut returns the part of an array that is below the limits of its axes.
func (a array) cut(limits []int) array {
	out := array{shape: limits}
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(limits) {
			out.values = append(out.values, a.values[at])
			return
		}
		if axis == len(limits)-1 {
			at *= a.shape[axis]
			out.values = append(out.values, a.values[at:at+limits[axis]]...)
			return
		}
		for i := range limits[axis] {
			walk(axis+1, at*a.shape[axis]+i)
		}
	}
	walk(0, 0)
	return out
}

// row returns a row of an array whose first axis is that of the rows.
func (a array) row(i int) array {
	n := len(a.values) / a.shape[0]
	return array{a.shape[1:], a.values[i*n : (i+1)*n]}
}

// panels bounds the matrices of a picture.
const panels = 16

// draw draws an array as matrices of its last two axes, the first ones above each other; nil if it has none. Time goes
// from left to right: that is the last axis but one, or the last one if it alone has a symbol.
func draw(a array, spec manifest.Shape) ([]byte, error) {
	axes := len(a.shape)
	if axes < 2 || a.shape[axes-2] < 2 || a.shape[axes-1] < 2 {
		return nil, nil
	}
	rows, columns := a.shape[axes-2], a.shape[axes-1]
	all := len(a.values) / (rows * columns)
	turned := spec[len(spec)-1].Symbol != "" && spec[len(spec)-2].Symbol == ""
	var list []picture.Matrix
	for i := range min(all, panels) {
		m := picture.Matrix{Values: a.values[i*rows*columns : (i+1)*rows*columns], Columns: columns}
		if turned {
			m = picture.Matrix{Values: transposed(m.Values, columns), Columns: rows}
		}
		if all > 1 {
			m.Name = strconv.Itoa(i)
		}
		list = append(list, m)
	}
	return picture.Heat(picture.Step{Size: 1}, list...)
}

// side bounds the rows and the columns of a picture of weights, so that it has some 64 kB.
const side = 256

// drawWeights draws a parameter, or its gradient, as a matrix of its first axis, from left to right, and all others;
// nil if it has one axis. A value of a larger matrix is the mean of several.
func drawWeights(a array) ([]byte, error) {
	if len(a.shape) < 2 || a.shape[0] < 2 || len(a.values) < 2*a.shape[0] {
		return nil, nil
	}
	return picture.Heat(picture.Step{Size: 1}, shrunk(a.values, len(a.values)/a.shape[0], side))
}

// shrunk is a matrix whose rows and columns are at most so many.
func shrunk(values []float32, columns, most int) picture.Matrix {
	rows := len(values) / columns
	down, across := (rows+most-1)/most, (columns+most-1)/most
	m := picture.Matrix{Columns: (columns + across - 1) / across}
	for row := 0; row < rows; row += down {
		for column := 0; column < columns; column += across {
			sum, n := 0.0, 0
			for i := row; i < min(rows, row+down); i++ {
				for _, v := range values[i*columns+column : i*columns+min(columns, column+across)] {
					sum, n = sum+float64(v), n+1
				}
			}
			m.Values = append(m.Values, float32(sum/float64(n)))
		}
	}
	return m
}

func transposed(values []float32, columns int) []float32 {
	rows := len(values) / columns
	out := make([]float32, len(values))
	for i, v := range values {
		out[i%columns*rows+i/columns] = v
	}
	return out
}
