// Package convolve convolves the samples of a row with the impulse response of a room, by Fourier transforms of blocks
// (overlap-save).
package convolve

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

// The scratch memory of a row that Keep uses. Others are free for the caller.
const (
	inputs    = 7 // float64
	outputs   = 6
	frames    = 5
	responses = 3 // complex
	spectra   = 2
)

// Keep sets the samples of a row to x*h, from sample delay of the convolution on, where x are the samples before and h
// is a response. It keeps the length of the row and its power: reverberation changes no level. A convolution without
// power leaves the row as it is.
func Keep(r *waveform.Row, h []float64, delay int) {
	n, length := len(r.Samples), len(h)
	size := blockSize(n, length)
	step := size - length + 1
	t := r.Transform(size)
	frame, response, spectrum := r.Float64(frames, size), r.Complex(responses, size/2+1), r.Complex(spectra, size/2+1)
	copy(frame, h)
	clear(frame[length:])
	t.Spectrum(response, frame)

	x, y := r.Float64(inputs, n), r.Float64(outputs, n)
	for i, v := range r.Samples {
		x[i] = float64(v)
	}
	for from := 0; from < n; from += step {
		first := from + delay - length + 1 // the first sample of x that the block needs
		lo, hi := min(max(first, 0), n), min(max(first+size, 0), n)
		clear(frame[:lo-first])
		copy(frame[lo-first:], x[lo:hi])
		clear(frame[hi-first:])
		t.Spectrum(spectrum, frame)
		for k, c := range response {
			spectrum[k] *= c
		}
		t.Inverse(frame, spectrum)
		copy(y[from:], frame[length-1:])
	}
	power := waveform.Power(y)
	if power == 0 {
		return
	}
	scale := math.Sqrt(r.Power / power)
	for i, v := range y {
		r.Samples[i] = float32(scale * v)
	}
}

// blockSize returns the size of the transforms with the least work, for n samples and a response of a length.
func blockSize(n, length int) int {
	best, least := 0, math.Inf(1)
	whole := waveform.FFTSize(n + length - 1)
	for size := waveform.FFTSize(min(2*length, n+length-1)); size <= whole; size *= 2 {
		blocks := (n + size - length) / (size - length + 1)
		work := float64(2*blocks+1) * float64(size) * math.Log2(float64(size))
		if work < least {
			best, least = size, work
		}
	}
	return best
}
