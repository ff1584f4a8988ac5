// Package tempo implements the stage "tempo", which makes the rows faster or slower and keeps their pitch, by WSOLA.
// The length of the rows changes.
//
// The tempo is uniform in [tempo_min, tempo_max]. A row of n samples gets n/tempo, rounded to the nearest. The result
// consists of blocks of 20 ms, in each of which one part of the row fades into another: each is moved by up to 10 ms,
// to where it continues the one before it best.
//
// The host reserves room for the longest result of the target waveform. A reference waveform has the length of its
// bucket: what a slower one has beyond it is cut, as the reference is a part of a clip anyway.
package tempo

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/wsola"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	TempoMin float64 `json:"tempo_min"`
	TempoMax float64 `json:"tempo_max"`
}

func defaults() config { return config{TempoMin: 0.9, TempoMax: 1.1} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}, Resizes: true} }

type effect struct {
	config config
	sizes  wsola.Sizes
}

// Configure refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	e.sizes = wsola.New(cfg.Features.SampleRate)
	return waveform.Ordered(waveform.Range{Name: "tempo", Low: e.config.TempoMin, High: e.config.TempoMax})
}

// Apply draws the tempo.
func (e *effect) Apply(r *waveform.Row) error {
	tempo := r.Uniform(e.config.TempoMin, e.config.TempoMax)
	r.Report("tempo", tempo)
	samples := r.Float32(0, len(r.Samples))
	copy(samples, r.Samples)
	e.sizes.Stretch(r, r.Resize(int(math.Round(float64(len(samples))/tempo))), samples, tempo)
	return nil
}
