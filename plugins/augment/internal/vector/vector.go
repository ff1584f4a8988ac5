// Package vector has inner loops of stages in the vector instructions of amd64: the Go compiler uses none. All are of
// SSE2, which every amd64 processor has, so nothing depends on which one it is. Other architectures have the loops in
// Go. A result has the same bits as the loop in Go has on amd64, where the compiler fuses no product with a sum: each
// sample is computed by itself, with the same roundings, and sums have the order of the function that they replace.
package vector

import "math"

// Scale multiplies samples by a factor.
func Scale(samples []float32, factor float32) { scale(samples, factor) }

// Clip sets what is beyond a positive limit to the limit, then multiplies by a factor. Samples are finite.
func Clip(samples []float32, limit, factor float32) { clip(samples, limit, factor) }

// Peak returns the largest magnitude of samples. It is NaN if one of them is, else infinite if one of them is.
func Peak(samples []float32) float32 { return math.Float32frombits(peak(samples)) }

// MultiplyAdd adds the products of two spectra to a third, which has no more numbers than they.
func MultiplyAdd(sum, a, b []complex128) { multiplyAdd(sum, a[:len(sum)], b[:len(sum)]) }

func multiplyAddEach(sum, a, b []complex128) {
	for k := range sum {
		sum[k] += a[k] * b[k]
	}
}

func scaleEach(samples []float32, factor float32) {
	for i := range samples {
		samples[i] *= factor
	}
}

func clipEach(samples []float32, limit, factor float32) {
	for i, x := range samples {
		if x > limit { // the built-in min and max take longer, for the sake of NaN
			x = limit
		} else if x < -limit {
			x = -limit
		}
		samples[i] = factor * x
	}
}

// peakEach returns the bits of the peak: magnitudes of floats are in the order of their bits.
func peakEach(samples []float32) uint32 {
	peak := uint32(0)
	for _, x := range samples {
		peak = max(peak, math.Float32bits(x)&^(1<<31))
	}
	return peak
}
