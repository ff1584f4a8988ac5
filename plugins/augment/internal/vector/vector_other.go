//go:build !amd64

package vector

func scale(samples []float32, factor float32) { scaleEach(samples, factor) }

func clip(samples []float32, limit, factor float32) { clipEach(samples, limit, factor) }

func softClip(samples []float32, inverse, level float32) { softClipEach(samples, inverse, level) }

func multiplyAdd(sum, a, b []complex128) { multiplyAddEach(sum, a, b) }

func peak(samples []float32) uint32 { return peakEach(samples) }

// Radix4 is a pass of Fourier transforms. It is nil where package fft has to use its own.
var Radix4 func(to, from []complex128, twiddles [][3]complex128, stride int)

// Resample computes the inner samples of package resample, as its Inner. It is nil where that package has to use its
// own.
var Resample func(dst, x []float32, phases [][]float32, phase, down int)
