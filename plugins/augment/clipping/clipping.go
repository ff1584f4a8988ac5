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
		level = peak / tanh(peak/threshold)
	}
	soft(r.Samples, threshold, level)
	return nil
}

// soft sets each sample x to level*tanh(x/threshold).
func soft(samples []float32, threshold, level float32) {
	inverse := 1 / threshold
	for i, x := range samples {
		samples[i] = level * tanh(x*inverse)
	}
}

// tanh is the hyperbolic tangent within 5e-7, as a ratio of polynomials: about three times as fast as by exponentials.
// It is that of Eigen (MathFunctionsImpl.h, ptanh_float, 2024), whose result is 1 in float32 from 7.9 on.
func tanh(x float32) float32 {
	const largest = 7.90531110763549805
	if x > largest {
		return 1
	}
	if x < -largest {
		return -1
	}
	y := x * x
	p := float32(-2.76076847742355e-16)
	p = float32(p*y) + 2.00018790482477e-13
	p = float32(p*y) - 8.60467152213735e-11
	p = float32(p*y) + 5.12229709037114e-08
	p = float32(p*y) + 1.48572235717979e-05
	p = float32(p*y) + 6.37261928875436e-04
	p = float32(p*y) + 4.89352455891786e-03
	q := float32(1.19825839466702e-06)
	q = float32(q*y) + 1.18534705686654e-04
	q = float32(q*y) + 2.26843463243900e-03
	q = float32(q*y) + 4.89352518554385e-03
	return x * p / q
}
