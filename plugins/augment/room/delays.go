package room

import (
	"math"

	"gonum.org/v1/gonum/blas/gonum"
)

// half is half the width of a fractional delay, in samples: an image that arrives with the direct sound has its peak at
// this sample of the response.
const half = 16

// A fractional delay by d, 0 to 1, is a sinc in a Hann window, of which each of the 2*half samples is a polynomial in d
// of degree order (C. W. Farrow, "A continuously variable digital delay element", 1988). So the images are added up for
// each power of d first, at whole samples, and then a fixed filter for each power is applied once to all of them.
const (
	order = 6
	group = 8 // values for a sample: for each power of d, and one that is not used
)

var blas gonum.Implementation

// sumsOf is the number of sums for a response: a group for each sample, and for those that the filters reach before it.
func sumsOf(samples int) int { return (samples + 2*half) * group }

// arrive adds an image with a gain that arrives at a sample and a fraction of one.
func arrive(sums []float32, at int, d, gain float32) {
	s, dd, even, odd := (*[group]float32)(sums[(at+2*half)*group:]), d*d, gain, gain*d
	for i := 0; i < order; i += 2 { // two chains of products, which the processor computes at the same time
		s[i] += even
		s[i+1] += odd
		even, odd = even*dd, odd*dd
	}
	s[order] += even
}

// delayAll computes the response of what has arrived.
func delayAll(response, sums []float32) {
	for i := range response {
		response[i] = blas.Sdot(len(filters), filters[:], 1, sums[i*group:i*group+len(filters)], 1)
	}
}

// filters has the polynomials' coefficients, the last sample of the sinc first: those are its values where d is
// (1+cos(pi*i/6))/2, i from 0 to 6. Both ends are among them: an image that arrives at a sample is exact.
var filters = func() *[2 * half * group]float32 {
	var points [order + 1]float64
	for i := range points {
		points[i] = (1 + math.Cos(math.Pi*float64(i)/order)) / 2
	}
	sums := new([2 * half * group]float64)
	for i, point := range points {
		polynomial, degree := [order + 1]float64{1}, 0 // 1 at the point, 0 at the others
		for j, other := range points {
			if j == i {
				continue
			}
			degree++
			for k := degree; k >= 0; k-- {
				x := -other * polynomial[k]
				if k > 0 {
					x += polynomial[k-1]
				}
				polynomial[k] = x / (point - other)
			}
		}
		for k := range 2 * half {
			value := windowed(float64(k-half+1) - point)
			for p, x := range polynomial {
				sums[(2*half-1-k)*group+p] += value * x
			}
		}
	}
	all := new([2 * half * group]float32)
	for i, x := range sums {
		all[i] = float32(x)
	}
	return all
}()

// windowed is a sinc in a Hann window.
func windowed(t float64) float64 {
	window := 0.5 * (1 + math.Cos(math.Pi*t/half))
	if t == 0 {
		return window
	}
	return window * math.Sin(math.Pi*t) / (math.Pi * t)
}
