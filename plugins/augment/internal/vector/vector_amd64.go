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

//go:noescape
func products(dst *float32, n int, x *float32, phases *[]float32, taps, phase, up, step, rest int)

// Resample computes the inner samples of package resample, as its Inner. It is nil where that package has to use its
// own.
var Resample = func(dst, x []float32, phases [][]float32, phase, down int) {
	up, taps := len(phases), len(phases[0])
	_ = x[(phase+(len(dst)-1)*down)/up+taps-1]
	products(&dst[0], len(dst), &x[0], &phases[0], taps, phase, up, down/up, down%up)
}

//go:noescape
func multiplyAddAll(sum, a, b *complex128, n int)

func multiplyAdd(sum, a, b []complex128) {
	if len(sum) > 0 {
		multiplyAddAll(&sum[0], &a[0], &b[0], len(sum))
	}
}

//go:noescape
func softClipLanes(x *float32, n int, inverse, level float32, constants *[13][4]float32)

// tanhConstants has each constant of Tanh four times. What is beyond largest becomes largest, of which Tanh is 1, too.
var tanhConstants = func() (all [13][4]float32) {
	for i, c := range [13]float32{largest, -largest, p6, p5, p4, p3, p2, p1, p0, q3, q2, q1, q0} {
		all[i] = [4]float32{c, c, c, c}
	}
	return all
}()

func softClip(samples []float32, inverse, level float32) {
	n := len(samples) &^ (lanes - 1)
	if n > 0 {
		softClipLanes(&samples[0], n, inverse, level, &tanhConstants)
	}
	softClipEach(samples[n:], inverse, level)
}
