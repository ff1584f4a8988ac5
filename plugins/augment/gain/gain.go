// Package gain implements the stage "gain", which changes the level of the rows.
//
// The level of a row changes by a gain that is uniform in dB. With drift, the gain changes linearly in dB from the
// first sample of the row to the last, by a number of dB that is uniform in [-drift_db_max, drift_db_max]: half of it
// is taken off the gain at the start, and half is added at the end. Nothing is clipped.
package gain

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	GainDBMin  float64 `json:"gain_db_min"`
	GainDBMax  float64 `json:"gain_db_max"`
	DriftDBMax float64 `json:"drift_db_max"`
}

func defaults() config { return config{GainDBMin: -12, GainDBMax: 6} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct{ config config }

// Configure refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	return waveform.Ordered(waveform.Range{Name: "gain_db", Low: e.config.GainDBMin, High: e.config.GainDBMax})
}

// Apply draws the gain and the drift.
func (e *effect) Apply(r *waveform.Row) error {
	gain := r.Uniform(e.config.GainDBMin, e.config.GainDBMax)
	drift := r.Uniform(-e.config.DriftDBMax, e.config.DriftDBMax)
	r.Report("gain_db", gain)
	if drift == 0 || len(r.Samples) == 1 {
		waveform.Scale(r.Samples, waveform.DBToAmplitude(gain))
		return nil
	}
	r.Report("drift_db", drift)
	ramp(r.Samples, gain-drift/2, gain+drift/2)
	return nil
}

// block is how many factors follow from a product: each begins with an exact one.
const block = 256

// ramp applies a gain that changes linearly in dB from the first sample to the last.
func ramp(samples []float32, from, to float64) {
	step := (to - from) / float64(len(samples)-1)
	ratio := waveform.DBToAmplitude(step)
	for start := 0; start < len(samples); start += block {
		factor := waveform.DBToAmplitude(from + float64(step*float64(start)))
		part := samples[start:min(start+block, len(samples))]
		for i, x := range part {
			part[i] = float32(factor * float64(x))
			factor *= ratio
		}
	}
}
