package waveaug

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// errNotFinite means that the power of a row cannot be measured.
var errNotFinite = errors.New("a sample is not finite")

// noiseBuffers holds *[]float64. All noise of a row must be drawn before its first sample can be scaled.
var noiseBuffers sync.Pool

// apply applies the effects to a clip, with noise from r. A clip of zeros gets no noise, because no noise has the drawn
// ratio to it. On an error, the clip is unchanged.
//
// Products are converted before they are added, here and in the other files: otherwise a compiler may fuse the two
// operations, and the bits would depend on the processor architecture.
func (d draws) apply(clip []float32, r *rand.Rand) error {
	signal := 0.0
	for _, x := range clip {
		signal += float64(float64(x) * float64(x))
	}
	if signal-signal != 0 { // NaN or infinite: finite samples cannot overflow the sum
		return errNotFinite
	}
	if d.noisy && signal > 0 {
		addNoise(clip, d, signal, r)
		return nil
	}
	if d.factor == 1 {
		return nil
	}
	for i, x := range clip {
		clip[i] = float32(d.factor * float64(x))
	}
	return nil
}

// addNoise sets the clip to factor*(clip + noise), rounded once.
func addNoise(clip []float32, d draws, signal float64, r *rand.Rand) {
	buffer, _ := noiseBuffers.Get().(*[]float64)
	if buffer == nil {
		buffer = new([]float64)
	}
	defer noiseBuffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], len(clip))
	noise := (*buffer)[:len(clip)]

	power := drawNoise(noise, r)
	scale := d.factor * math.Sqrt(signal/(power*d.snr))
	for i, x := range clip {
		clip[i] = float32(float64(d.factor*float64(x)) + float64(scale*noise[i]))
	}
}

// drawNoise fills noise with normally distributed numbers and returns their power, which is not 0.
func drawNoise[T float32 | float64](noise []T, r *rand.Rand) float64 {
	power := 0.0
	for i := range noise {
		n := r.NormFloat64()
		noise[i] = T(n)
		power += float64(n * n)
	}
	if power == 0 { // one sample with a draw of 0: nothing to scale
		power = 1
	}
	return power
}
