// Package speed implements the stage "speed", which plays the rows faster or slower, as a tape: tempo and pitch change
// together, and so does the length of the rows.
//
// The speed is uniform in [speed_min, speed_max], rounded to a whole percent. A row of n samples gets n/speed, rounded
// up, by a Kaiser-windowed sinc of 48 samples or, for a faster speed, as many times more. It passes up to 0.88 of the
// lower of the two Nyquist frequencies. What lies beyond 1.12 of it is 90 dB down, and what lies between is softer, and
// mirrored where it is beyond 1.
//
// The host reserves room for the longest result of the target waveform. A reference waveform has the length of its
// bucket: what a slower one has beyond it is cut, as the reference is a part of a clip anyway.
package speed

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/speeds"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	SpeedMin float64 `json:"speed_min"`
	SpeedMax float64 `json:"speed_max"`
}

func defaults() config { return config{SpeedMin: 0.9, SpeedMax: 1.1} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}, Resizes: true} }

type effect struct {
	config    config
	low, high int // percent
}

// Configure makes the filters. It refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	err := waveform.Ordered(waveform.Range{Name: "speed", Low: e.config.SpeedMin, High: e.config.SpeedMax})
	if err != nil {
		return err
	}
	// The host reserves room for the slowest speed (growth_key): no slower one may come of the rounding.
	e.low = int(math.Ceil(100*e.config.SpeedMin - 1e-9))
	e.high = max(e.low, speeds.Percent(e.config.SpeedMax))
	stage.EachRow(e.high-e.low+1, func(i int) { speeds.Filter(e.low + i) })
	return nil
}

// Apply draws the speed.
func (e *effect) Apply(r *waveform.Row) error {
	percent := max(e.low, speeds.Percent(r.Uniform(e.config.SpeedMin, e.config.SpeedMax)))
	r.Report("speed", float64(percent)/100)
	if percent == 100 {
		return nil
	}
	samples := r.Float32(0, len(r.Samples))
	copy(samples, r.Samples)
	filter := speeds.Filter(percent)
	filter.ResampleWith(vector.Resample, r.Resize(filter.Len(len(samples))), samples, 0, 0)
	return nil
}
