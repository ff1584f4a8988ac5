// Package wsola changes the tempo of speech and keeps its pitch, by overlap and add of similar parts of the waveform
// (W. Verhelst and M. Roelands, "An overlap-add technique based on waveform similarity (WSOLA) for high quality
// time-scale modification of speech", 1993).
//
// The result consists of blocks of 20 ms. In each, a part of the input fades out and the next one fades in. The next
// part lies where the tempo wants it, moved by up to 10 ms to the place whose first 20 ms are most like what would
// follow in the part before: their normalized correlation is the largest. So periods of voiced speech, of 50 Hz and
// more, continue.
package wsola

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

// The scratch memory of a row that Stretch uses. Others are free for the caller.
const (
	frames       = 7 // float64
	sums         = 6
	fades        = 5
	outs         = 4
	ins          = 3
	blocks       = 3 // complex
	correlations = 2
)

// Sizes are the lengths at a sample rate, in samples.
type Sizes struct {
	block  int // of the result that each part fades over
	search int // how far a part may be moved
	size   int // of the transforms that correlate
}

// New returns the lengths for a sample rate in Hz.
func New(rate int) Sizes {
	s := Sizes{block: max(8, rate/50), search: max(4, rate/100)}
	s.size = waveform.FFTSize(s.block + 2*s.search)
	return s
}

// Stretch fills dst with samples played at a tempo: len(samples)/len(dst) should be it. The row lends its memory only.
func (s Sizes) Stretch(r *waveform.Row, dst, samples []float32, tempo float64) {
	fade, out, in := r.Float64(fades, s.block), r.Float64(outs, s.block), r.Float64(ins, s.block)
	for i := range fade {
		fade[i] = 0.5 - 0.5*math.Cos(math.Pi*(float64(i)+0.5)/float64(s.block))
	}
	first := copy(dst, samples[:min(s.block, len(samples))])
	clear(dst[first:min(s.block, len(dst))])
	before := 0 // where the part lies that fades out, a block earlier
	for at := s.block; at < len(dst); at += s.block {
		wanted := int(math.Round(tempo * float64(at)))
		next := before + s.block
		if wanted != next {
			next = s.similar(r, samples, before+s.block, wanted)
		}
		waveform.Part(out, samples, before+s.block)
		waveform.Part(in, samples, next)
		for i := range dst[at:min(at+s.block, len(dst))] {
			dst[at+i] = float32(out[i] + float64(fade[i]*(in[i]-out[i])))
		}
		before = next
	}
}

// similar returns the place about wanted whose block is most like the one at model.
func (s Sizes) similar(r *waveform.Row, samples []float32, model, wanted int) int {
	frame := r.Float64(frames, s.size)
	t := r.Transform(s.size)
	modelSpectrum, spectrum := r.Complex(blocks, s.size/2+1), r.Complex(correlations, s.size/2+1)
	waveform.Part(frame[:s.block], samples, model)
	clear(frame[s.block:])
	t.Spectrum(modelSpectrum, frame)

	lags := 2*s.search + 1
	waveform.Part(frame, samples, wanted-s.search)
	energy := r.Float64(sums, lags)
	sum := waveform.Power(frame[:s.block])
	for lag := range lags {
		energy[lag] = sum
		if lag+1 < lags {
			sum += frame[lag+s.block]*frame[lag+s.block] - frame[lag]*frame[lag]
		}
	}
	t.Spectrum(spectrum, frame)
	for k, c := range modelSpectrum {
		spectrum[k] *= complex(real(c), -imag(c))
	}
	t.Inverse(frame, spectrum)
	best, largest := s.search, 0.0
	for lag, e := range energy {
		// The energy is a difference of sums: what is left of it in silence is rounding.
		if c := frame[lag]; c > 0 && e > 1e-12 && c*c > largest*e {
			best, largest = lag, c*c/e
		}
	}
	return wanted - s.search + best
}
