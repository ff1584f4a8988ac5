// Package equalizer implements the stage "equalizer", which filters the rows by a random chain of filters, or limits
// them to the band of a telephone.
//
// A row gets a random number of filters of second order, of kinds that are drawn from a list. The formulas are those of
// R. Bristow-Johnson's "Cookbook formulae for audio equalizer biquad filter coefficients". Each filter has a frequency
// that is uniform in its logarithm, and a Q that is, too. Shelves and peaks have a gain uniform in dB. The kind
// telephone is one filter from 300 to 3400 Hz (ITU-T G.712): a high pass and a low pass, each a Butterworth filter of
// fourth order. At the sample rates at which 3400 Hz is not below half of the rate, it has only the high pass.
package equalizer

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Kinds     []string `json:"kinds"`
	CountMin  int      `json:"count_min"`
	CountMax  int      `json:"count_max"`
	HzMin     float64  `json:"hz_min"`
	HzMax     float64  `json:"hz_max"`
	QMin      float64  `json:"q_min"`
	QMax      float64  `json:"q_max"`
	GainDBMin float64  `json:"gain_db_min"`
	GainDBMax float64  `json:"gain_db_max"`
}

func defaults() config {
	return config{Kinds: []string{"peaking", "lowshelf", "highshelf"}, CountMin: 1, CountMax: 4,
		HzMin: 100, HzMax: 4000, QMin: 0.5, QMax: 2, GainDBMin: -10, GainDBMax: 6}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config    config
	rate      int
	telephone []biquad.Filter
}

// The band of a telephone, in Hz.
const (
	telephoneLow  = 300
	telephoneHigh = 3400
)

// Configure refuses ranges in the wrong order, and frequencies that the waveforms do not have.
func (e *effect) Configure(cfg *stage.Config) error {
	c := &e.config
	if err := cfg.Decode(c); err != nil {
		return err
	}
	e.rate = cfg.Features.SampleRate
	for _, q := range biquad.Butterworth4 {
		e.telephone = append(e.telephone, biquad.Highpass(e.rate, telephoneLow, q))
		if 2*telephoneHigh < e.rate {
			e.telephone = append(e.telephone, biquad.Lowpass(e.rate, telephoneHigh, q))
		}
	}
	if err := waveform.Names("kinds", c.Kinds); err != nil {
		return err
	}
	if err := waveform.Audible(e.rate, "hz_max", c.HzMax); err != nil {
		return err
	}
	return waveform.Ordered(waveform.Range{Name: "count", Low: float64(c.CountMin), High: float64(c.CountMax)},
		waveform.Range{Name: "hz", Low: c.HzMin, High: c.HzMax},
		waveform.Range{Name: "q", Low: c.QMin, High: c.QMax},
		waveform.Range{Name: "gain_db", Low: c.GainDBMin, High: c.GainDBMax})
}

// Apply draws the number of filters, and the kind, frequency, Q and gain of each: the same numbers for every kind.
func (e *effect) Apply(r *waveform.Row) error {
	c := &e.config
	count := r.Integer(c.CountMin, c.CountMax)
	samples := r.Float64(0, len(r.Samples))
	for i, x := range r.Samples {
		samples[i] = float64(x)
	}
	var space [2*maxCount + 2]biquad.Filter
	filters := space[:0]
	for i := range count {
		kind := &c.Kinds[r.Below(len(c.Kinds))]
		hz, q, db := r.LogUniform(c.HzMin, c.HzMax), r.LogUniform(c.QMin, c.QMax), r.Uniform(c.GainDBMin, c.GainDBMax)
		r.ReportName(reported[i].kind, kind)
		if *kind == "telephone" {
			biquad.Cascade(e.telephone, samples)
			continue
		}
		r.Report(reported[i].hz, hz)
		r.Report(reported[i].q, q)
		r.Report(reported[i].db, db)
		filters = append(filters, design(*kind, e.rate, hz, q, db))
	}
	biquad.Cascade(filters, samples)
	for i, y := range samples {
		r.Samples[i] = float32(y)
	}
	return nil
}

// design returns a filter of a kind. Passes have no use for the gain.
func design(kind string, rate int, hz, q, db float64) biquad.Filter {
	switch kind {
	case "lowpass":
		return biquad.Lowpass(rate, hz, q)
	case "highpass":
		return biquad.Highpass(rate, hz, q)
	case "bandpass":
		return biquad.Bandpass(rate, hz, q)
	case "lowshelf":
		return biquad.Lowshelf(rate, hz, q, db)
	case "highshelf":
		return biquad.Highshelf(rate, hz, q, db)
	default:
		return biquad.Peaking(rate, hz, q, db)
	}
}
