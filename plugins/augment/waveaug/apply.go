package waveaug

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// errNotFinite says that a row has no power to measure.
var errNotFinite = errors.New("a sample is not finite")

// noiseBuffers holds *[]float64: a row's noise has to be known as a whole before its first sample can be scaled.
var noiseBuffers sync.Pool

// apply draws what happens to a clip and does it. A clip whose samples are all 0 gets no noise: no noise has the
// ratio to it that was drawn. The clip is unchanged when there is an error, or nothing to do.
//
// Products are converted before they are added, here and in the other files: the language allows a compiler to fuse
// the two otherwise, and the bits would depend on the processor's architecture.
func (c config) apply(clip []float32, r *rand.Rand) error {
	d := c.draw(r)
	signal := 0.0
	for _, x := range clip {
		signal += float64(float64(x) * float64(x))
	}
	if signal-signal != 0 { // NaN or infinite; finite samples are too small for it
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

// addNoise makes the clip factor*(clip + noise), rounded once.
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

// drawNoise fills noise with normal numbers and returns their power, which is not 0.
func drawNoise[T float32 | float64](noise []T, r *rand.Rand) float64 {
	power := 0.0
	for i := range noise {
		n := r.NormFloat64()
		noise[i] = T(n)
		power += float64(n * n)
	}
	if power == 0 { // one sample, and a draw of 0: nothing to scale
		power = 1
	}
	return power
}
