// Package convolve convolves the samples of a row with the impulse response of a room, by Fourier transforms of blocks:
// the response is divided into parts of a block, and the spectra of the last blocks of the row are kept (uniformly
// partitioned overlap-save). Small transforms stay in the cache of the processor.
package convolve

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

// The scratch memory of a row that Keep uses. Others are free for the caller.
const (
	outputs   = 7 // float64
	frames    = 6
	windows   = 5
	responses = 3 // complex
	inputs    = 2
	sums      = 1
)

// largest is the largest number of samples of a block.
const largest = 8192

// Keep sets the samples of a row to x*h, from sample delay of the convolution on, where x are the samples before and h
// is a response. It keeps the length of the row and its power: reverberation changes no level. A convolution without
// power leaves the row as it is.
func Keep(r *waveform.Row, h []float64, delay int) {
	power := r.Power()
	y := r.Float64(outputs, len(r.Samples))
	convolve(r, y, h, delay)
	got := waveform.Power(y)
	if got == 0 {
		return
	}
	scale := math.Sqrt(power / got)
	for i, v := range y {
		r.Samples[i] = float32(scale * v)
	}
}

// convolve writes samples delay, delay+1, ... of the convolution to y.
func convolve(r *waveform.Row, y, h []float64, delay int) {
	block := min(largest, waveform.FFTSize(max(len(h), 8)))
	size, bins := 2*block, block+1
	parts := (len(h) + block - 1) / block
	t := r.Transform(size)
	frame, window, sum := r.Float64(frames, size), r.Float64(windows, size), r.Complex(sums, bins)
	response, input := r.Complex(responses, parts*bins), r.Complex(inputs, parts*bins)
	for p := range parts {
		n := copy(frame[:block], h[p*block:])
		clear(frame[n:])
		t.Spectrum(response[p*bins:][:bins], frame)
	}
	clear(window) // what lies before the row
	clear(input)
	last := (len(y) - 1 + delay) / block
	for b := range last + 1 {
		copy(window, window[block:])
		waveform.Part(window[block:], r.Samples, b*block)
		t.Spectrum(input[b%parts*bins:][:bins], window)
		from := b*block - delay // where the block lies in y
		if from+block <= 0 {
			continue
		}
		clear(sum)
		for p := range min(parts, b+1) {
			vector.MultiplyAdd(sum, input[(b-p)%parts*bins:][:bins], response[p*bins:][:bins])
		}
		t.Inverse(frame, sum)
		copy(y[max(from, 0):], frame[block+max(-from, 0):])
	}
}
