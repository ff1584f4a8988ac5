// Package clipping implements the stage "clipping", which distorts the rows as an overloaded amplifier does.
//
// The threshold t of a row lies a number of dB below the row's peak that is uniform in [depth_db_min, depth_db_max].
// Hard clipping sets what is beyond t to t. Soft clipping makes t tanh(x/t) of a sample x: small samples pass, and no
// result is beyond t. With make_up, a gain brings the peak of the row back to what it was. A row whose peak is
// below 1e-30 stays as it is.
package clipping

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Kinds      []string `json:"kinds"`
	DepthDBMin float64  `json:"depth_db_min"`
	DepthDBMax float64  `json:"depth_db_max"`
	MakeUp     bool     `json:"make_up"`
}

func defaults() config {
	return config{Kinds: []string{"hard", "soft"}, DepthDBMin: 3, DepthDBMax: 15, MakeUp: true}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct{ config config }

// Configure refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	if err := waveform.Names("kinds", e.config.Kinds); err != nil {
		return err
	}
	return waveform.Ordered(waveform.Range{Name: "depth_db", Low: e.config.DepthDBMin, High: e.config.DepthDBMax})
}

// faintest is the least peak of a row that is clipped. Far below it, 1/threshold is infinite in float32.
const faintest = 1e-30

// Apply draws the kind and the depth.
func (e *effect) Apply(r *waveform.Row) error {
	kind := &e.config.Kinds[r.Below(len(e.config.Kinds))]
	depth := r.Uniform(e.config.DepthDBMin, e.config.DepthDBMax)
	peak := vector.Peak(r.Samples)
	if peak < faintest {
		return nil
	}
	r.ReportName("kind", kind)
	r.Report("depth_db", depth)
	threshold := peak * float32(waveform.DBToAmplitude(-depth))
	if *kind == "hard" {
		makeUp := float32(1)
		if e.config.MakeUp {
			makeUp = peak / threshold
		}
		vector.Clip(r.Samples, threshold, makeUp)
		return nil
	}
	level := threshold // of what is beyond the threshold by far
	if e.config.MakeUp {
		level = peak / vector.Tanh(peak/threshold)
	}
	vector.SoftClip(r.Samples, 1/threshold, level)
	return nil
}
