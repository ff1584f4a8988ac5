// Package griffinlim makes waveforms of log-mel spectrograms without a model: phases that agree with the magnitudes, by
// the fast algorithm of Griffin and Lim (Perraudin, Balazs and Søndergaard, A fast Griffin-Lim algorithm, WASPAA 2013).
//
//	v, err := griffinlim.New(features, griffinlim.Config{Iterations: 60, Momentum: 0.99, Threads: 4})
//	...
//	wave, err := v.Waveform(ctx, frames, seed, 0)
//
// Equal seeds give equal bits, with any number of threads.
package griffinlim

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"sync"

	"github.com/xtts-host/xtts-host/shared/fft"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
)

// Config configures a Vocoder.
type Config struct {
	Iterations int
	// Momentum is the paper's alpha; 0 is the algorithm of Griffin and Lim (1984).
	Momentum float64
	Threads  int
}

// Vocoder makes waveforms of the spectrograms of one feature contract. Calls are independent of each other.
type Vocoder struct {
	Config
	features manifest.Features
	mel      *mel.Extractor
	bands    *bands
	plan     fft.Plan
}

// New refuses a contract that no spectrogram can have.
func New(f manifest.Features, c Config) (*Vocoder, error) {
	e, err := mel.New(f)
	if err != nil {
		return nil, err
	}
	return &Vocoder{Config: c, features: f, mel: e, bands: newBands(e), plan: fft.New(f.NFFT)}, nil
}

// Waveform returns a waveform whose spectrogram is near to frames, f32[T, n_mels]. The seed and the number of a
// sequence determine the first phases.
func (v *Vocoder) Waveform(ctx context.Context, frames []float32, seed, sequence uint64) ([]float32, error) {
	for i, x := range frames {
		if x-x != 0 {
			return nil, fmt.Errorf("value %d of frame %d is %v", i%v.features.NMels, i/v.features.NMels, x)
		}
	}
	s := v.start(frames, rand.New(rand.NewPCG(seed, sequence)))
	for range v.Iterations {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		s.synthesize()
		s.analyze()
	}
	s.synthesize()
	return s.wave, nil
}

// search is the state of the iteration.
type search struct {
	*Vocoder
	count, bins int
	magnitudes  []float64    // [count, bins]
	spectrum    []complex128 // [count, bins], with the momentum
	last        []complex128 // [count, bins], that of the waveform before
	parts       []float64    // [count, n_fft], windowed
	overlap     []float64    // of each sample: the sum of the squared windows
	sums        []float64    // of each sample: the sum of the parts
	wave        []float32
	first       int // sample of the first part
	workers     []*scratch
}

// scratch is what a thread needs for a frame.
type scratch struct {
	fft.Transform
	bands   bandScratch
	samples []float32 // n_fft
	frame   []float64 // n_fft
}

func (v *Vocoder) start(frames []float32, random *rand.Rand) *search {
	f := v.features
	cutter := v.mel.Cutter()
	s := &search{Vocoder: v, count: len(frames) / f.NMels, bins: f.NFFT/2 + 1, first: cutter.First()}
	for range min(max(1, s.Threads), max(1, s.count)) {
		s.workers = append(s.workers,
			&scratch{s.plan.Transform(), v.bands.scratch(), make([]float32, f.NFFT), make([]float64, f.NFFT)})
	}
	s.magnitudes = make([]float64, s.count*s.bins)
	s.each(func(t int, own *scratch) {
		v.bands.magnitudes(s.magnitudes[t*s.bins:][:s.bins], frames[t*f.NMels:][:f.NMels], own.bands)
	})
	s.spectrum, s.last = make([]complex128, len(s.magnitudes)), make([]complex128, len(s.magnitudes))
	for i := range s.spectrum {
		s.spectrum[i] = cmplx.Rect(1, 2*math.Pi*random.Float64())
	}
	s.parts = make([]float64, s.count*f.NFFT)
	s.wave = make([]float32, max(0, s.first+(s.count-1)*f.HopLength+f.NFFT+s.first))
	s.overlap, s.sums = make([]float64, len(s.wave)), make([]float64, len(s.wave))
	window := v.mel.Tables().Window
	s.covered(func(sample, _, at int) { s.overlap[sample] += window[at] * window[at] })
	return s
}

// covered calls add with each sample of the waveform that a part covers: the part, and the place in it.
func (s *search) covered(add func(sample, part, at int)) {
	for t := range s.count {
		begin := s.first + t*s.features.HopLength
		for at := max(0, -begin); at < min(s.features.NFFT, len(s.wave)-begin); at++ {
			add(begin+at, t, at)
		}
	}
}

// synthesize makes the waveform whose spectrum is nearest to the phases with the magnitudes (Griffin and Lim 1984,
// equation 6).
func (s *search) synthesize() {
	n, window := s.features.NFFT, s.mel.Tables().Window
	s.each(func(t int, own *scratch) {
		spectrum, part := s.spectrum[t*s.bins:][:s.bins], s.parts[t*n:][:n]
		for k, m := range s.magnitudes[t*s.bins:][:s.bins] {
			re, im := real(spectrum[k]), imag(spectrum[k])
			if size := math.Sqrt(re*re + im*im); size > 0 {
				spectrum[k] = complex(re*(m/size), im*(m/size))
			} else {
				spectrum[k] = complex(m, 0)
			}
		}
		own.Inverse(part, spectrum)
		for i, w := range window {
			part[i] *= w
		}
	})
	clear(s.sums)
	s.covered(func(sample, part, at int) { s.sums[sample] += s.parts[part*n+at] })
	for i, sum := range s.sums {
		if s.wave[i] = 0; s.overlap[i] > 1e-8 {
			s.wave[i] = float32(sum / s.overlap[i])
		}
	}
}

// analyze makes the spectrum of the waveform, which the frames of the stage have, too, and goes on by the momentum.
func (s *search) analyze() {
	cutter, window := s.mel.Cutter(), s.mel.Tables().Window
	s.each(func(t int, own *scratch) {
		for i, x := range cutter.Cut(t, s.wave, own.samples) {
			own.frame[i] = float64(x) * window[i]
		}
		spectrum, last := s.spectrum[t*s.bins:][:s.bins], s.last[t*s.bins:][:s.bins]
		own.Spectrum(spectrum, own.frame)
		for k, x := range spectrum {
			step := x - last[k]
			spectrum[k], last[k] = x+complex(s.Momentum*real(step), s.Momentum*imag(step)), x
		}
	})
}

// each calls do with every frame, on several threads.
func (s *search) each(do func(int, *scratch)) {
	var group sync.WaitGroup
	for w, own := range s.workers {
		group.Go(func() {
			for t := s.count * w / len(s.workers); t < s.count*(w+1)/len(s.workers); t++ {
				do(t, own)
			}
		})
	}
	group.Wait()
}
