// Package pitch implements the stage "pitch", which shifts the pitch of the rows and keeps their tempo and length.
//
// The shift is uniform in [semitones_min, semitones_max]. The factor 2^(semitones/12) is rounded to a whole percent,
// which is within 9 cents of the drawn shift. A row is made longer by the factor with its pitch kept, as the stage
// tempo does, and then played at that speed, as the stage speed does. Formants move with the pitch: so the voice
// becomes that of another person, not only one who speaks higher.
package pitch

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/speeds"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/wsola"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	SemitonesMin float64 `json:"semitones_min"`
	SemitonesMax float64 `json:"semitones_max"`
}

func defaults() config { return config{SemitonesMin: -3, SemitonesMax: 3} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config config
	sizes  wsola.Sizes
}

func percent(semitones float64) int { return speeds.Percent(math.Pow(2, semitones/12)) }

// Configure makes the filters. It refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	e.sizes = wsola.New(cfg.Features.SampleRate)
	low, high := percent(e.config.SemitonesMin), percent(e.config.SemitonesMax)
	stage.EachRow(max(0, high-low+1), func(i int) { speeds.Filter(low + i) })
	return waveform.Ordered(waveform.Range{Name: "semitones", Low: e.config.SemitonesMin, High: e.config.SemitonesMax})
}

// Apply draws the shift.
func (e *effect) Apply(r *waveform.Row) error {
	speed := percent(r.Uniform(e.config.SemitonesMin, e.config.SemitonesMax))
	r.Report("semitones", 12*math.Log2(float64(speed)/100))
	if speed == 100 {
		return nil
	}
	longer := r.Float32(0, (len(r.Samples)*speed+99)/100)
	e.sizes.Stretch(r, longer, r.Samples, 100/float64(speed))
	speeds.Filter(speed).ResampleWith(vector.Resample, r.Samples, longer, 0, 0)
	return nil
}
