// Package shift implements the stage "shift", which moves the rows in time by a random number of milliseconds: to later
// if it is positive, to earlier if it is negative. The length of a row stays.
//
// In the mode zeros, what is moved beyond an end is lost, and zeros follow at the other end. In the mode circular, it
// comes in again at the other end. A row moves by half of its length at most.
package shift

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	ShiftMSMin float64 `json:"shift_ms_min"`
	ShiftMSMax float64 `json:"shift_ms_max"`
	Mode       string  `json:"mode"`
}

func defaults() config { return config{ShiftMSMin: -100, ShiftMSMax: 100, Mode: "zeros"} }

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
	return waveform.Ordered(waveform.Range{Name: "shift_ms", Low: e.config.ShiftMSMin, High: e.config.ShiftMSMax})
}

// Apply draws the shift.
func (e *effect) Apply(r *waveform.Row) error {
	ms := r.Uniform(e.config.ShiftMSMin, e.config.ShiftMSMax)
	half := len(r.Samples) / 2
	by := min(max(waveform.Samples(ms, e.rate), -half), half)
	r.Report("shift_samples", float64(by))
	move(r.Samples, by, e.config.Mode == "circular", r.Float32(0, max(by, -by)))
	return nil
}

// move moves samples by a number that is at most their count, with scratch memory for as many as it is.
func move(samples []float32, by int, circular bool, lost []float32) {
	var free []float32 // what no sample was moved to
	if by >= 0 {
		copy(lost, samples[len(samples)-by:])
		copy(samples[by:], samples)
		free = samples[:by]
	} else {
		copy(lost, samples[:-by])
		copy(samples, samples[-by:])
		free = samples[len(samples)+by:]
	}
	if circular {
		copy(free, lost)
	} else {
		clear(free)
	}
}
