// Package noise implements the stage "noise", which adds synthetic noise at a random signal-to-noise ratio.
//
// The noise of a row has one of the colors: its power falls by 0 (white), 3.01 (pink) or 6.02 dB per octave (brown), or
// rises by 3.01 (blue) or 6.02 (violet). White noise is drawn sample by sample, from a normal distribution. The others
// are drawn as a spectrum: each coefficient has a normal real and imaginary part, in proportion to f^(slope/2), and
// none below 20 Hz, where the power of brown noise would lie and no one hears it. The inverse Fourier transform of at
// least as many samples as the row has is the noise. Its power is measured over the row, so the row has exactly the
// drawn ratio, which is uniform in dB and counts all samples of the row, pauses included. A silent row gets no noise.
package noise

import (
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Colors   []string `json:"colors"`
	SNRDBMin float64  `json:"snr_db_min"`
	SNRDBMax float64  `json:"snr_db_max"`
}

func defaults() config {
	return config{Colors: []string{"white", "pink", "brown"}, SNRDBMin: 10, SNRDBMax: 40}
}

// slopes has the exponent of the power over the frequency for each color.
var slopes = map[string]float64{"white": 0, "pink": -1, "brown": -2, "blue": 1, "violet": 2}

// lowest is the lowest frequency of colored noise, in Hz.
const lowest = 20

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config config
	rate   int
}

// Configure refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	e.rate = cfg.Features.SampleRate
	if err := waveform.Names("colors", e.config.Colors); err != nil {
		return err
	}
	return waveform.Ordered(waveform.Range{Name: "snr_db", Low: e.config.SNRDBMin, High: e.config.SNRDBMax})
}

// Apply draws the color and the ratio, then the noise.
func (e *effect) Apply(r *waveform.Row) error {
	color := &e.config.Colors[r.Below(len(e.config.Colors))]
	snr := r.Uniform(e.config.SNRDBMin, e.config.SNRDBMax)
	if r.Power() == 0 {
		return nil
	}
	r.ReportName("color", color)
	r.Report("snr_db", snr)
	var noise []float64
	if slope := slopes[*color]; slope == 0 {
		noise = r.Float64(0, len(r.Samples))
		rand := r.Fast()
		for i := range noise {
			noise[i] = rand.NormFloat64()
		}
	} else {
		n := waveform.FFTSize(len(r.Samples))
		spectrum := r.Complex(0, n/2+1)
		draw(spectrum, slope, float64(e.rate)/float64(n), r.Fast())
		noise = r.Float64(0, n)
		r.Transform(n).Inverse(noise, spectrum)
		noise = noise[:len(r.Samples)]
	}
	r.Mix(noise, waveform.Power(noise), snr)
	return nil
}

// draw draws a spectrum whose bins are step Hz apart, with a power in proportion to f^slope.
func draw(spectrum []complex128, slope, step float64, rand *rand.Rand) {
	for k := range spectrum {
		hz := float64(k) * step
		if hz < lowest || k == len(spectrum)-1 { // the last is real, and half of a pair
			spectrum[k] = 0
			continue
		}
		a := amplitude(slope, hz)
		spectrum[k] = complex(a*rand.NormFloat64(), a*rand.NormFloat64())
	}
}

// amplitude is f^(slope/2).
func amplitude(slope, hz float64) float64 {
	switch slope {
	case -2:
		return 1 / hz
	case -1:
		return 1 / math.Sqrt(hz)
	case 1:
		return math.Sqrt(hz)
	default:
		return hz
	}
}
