// Package clipping implements the stage "clipping", which distorts the rows as an overloaded amplifier does.
//
// The threshold t of a row lies a number of dB below the row's peak that is uniform in [depth_db_min, depth_db_max].
// Hard clipping sets what is beyond t to t. Soft clipping makes t tanh(x/t) of a sample x: small samples pass, and no
// result is beyond t. With make_up, a gain brings the peak of the row back to what it was.
package clipping

import (
	"math"

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

// Apply draws the kind and the depth.
func (e *effect) Apply(r *waveform.Row) error {
	kind := &e.config.Kinds[r.Below(len(e.config.Kinds))]
	depth := r.Uniform(e.config.DepthDBMin, e.config.DepthDBMax)
	peak := waveform.Peak(r.Samples)
	if peak == 0 {
		return nil
	}
	r.ReportName("kind", kind)
	r.Report("depth_db", depth)
	threshold := float64(peak) * waveform.DBToAmplitude(-depth)
	clip := hard
	if *kind == "soft" {
		clip = soft
	}
	clip(r.Samples, threshold)
	if e.config.MakeUp {
		waveform.Scale(r.Samples, float64(peak)/float64(waveform.Peak(r.Samples)))
	}
	return nil
}

func hard(samples []float32, threshold float64) {
	t := float32(threshold)
	for i, x := range samples {
		if x > t { // the built-in min and max take longer, for the sake of NaN
			samples[i] = t
		} else if x < -t {
			samples[i] = -t
		}
	}
}

func soft(samples []float32, threshold float64) {
	for i, x := range samples {
		samples[i] = float32(threshold * tanh(float64(x)/threshold))
	}
}

// tanh is math.Tanh within 1e-9, in less time: by one exponential and no branch on the size of x.
func tanh(x float64) float64 {
	e := math.Exp(2 * x)
	if e > 1e18 {
		return 1
	}
	return (e - 1) / (e + 1)
}
