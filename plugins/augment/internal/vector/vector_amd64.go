package vector

import "slices"

// lanes is the number of samples that a step of the loops has. The rest of a row is computed in Go.
const lanes = 8

//go:noescape
func scaleLanes(x *float32, n int, factor float32)

//go:noescape
func clipLanes(x *float32, n int, limit, factor float32)

//go:noescape
func peakLanes(x *float32, n int, peaks *[lanes]uint32)

//go:noescape
func radix4(to, from *complex128, twiddles *[3]complex128, runs, stride int)

func scale(samples []float32, factor float32) {
	n := len(samples) &^ (lanes - 1)
	if n > 0 {
		scaleLanes(&samples[0], n, factor)
	}
	scaleEach(samples[n:], factor)
}

func clip(samples []float32, limit, factor float32) {
	n := len(samples) &^ (lanes - 1)
	if n > 0 {
		clipLanes(&samples[0], n, limit, factor)
	}
	clipEach(samples[n:], limit, factor)
}

func peak(samples []float32) uint32 {
	n := len(samples) &^ (lanes - 1)
	var peaks [lanes]uint32
	if n > 0 {
		peakLanes(&samples[0], n, &peaks)
	}
	return max(slices.Max(peaks[:]), peakEach(samples[n:]))
}

// Radix4 is a pass of Fourier transforms. It is nil where package fft has to use its own.
var Radix4 = func(to, from []complex128, twiddles [][3]complex128, stride int) {
	n := 4 * len(twiddles) * stride
	to, from = to[:n], from[:n]
	radix4(&to[0], &from[0], &twiddles[0], len(twiddles), stride)
}
