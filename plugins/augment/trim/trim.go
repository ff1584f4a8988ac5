// Package trim implements the stage "trim", which takes silence from both ends of the rows, and keeps a random margin
// of it. The rows become shorter.
//
// The level of a frame is its mean square. Frames lie about every fourth part of a frame, the first about sample 0,
// with zeros beyond the ends of the row, as in librosa.effects.trim. A frame is silent if its level is more than
// threshold_db below that of the loudest frame. The row is cut before the first frame that is not silent and after the
// last, and the margin is kept outside of these, as far as the row has it: at each end a number of milliseconds that is
// uniform in [margin_ms_min, margin_ms_max]. A silent row stays as it is.
package trim

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	ThresholdDB float64 `json:"threshold_db"`
	FrameMS     float64 `json:"frame_ms"`
	MarginMSMin float64 `json:"margin_ms_min"`
	MarginMSMax float64 `json:"margin_ms_max"`
}

func defaults() config {
	return config{ThresholdDB: 40, FrameMS: 40, MarginMSMin: 20, MarginMSMax: 100}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}, Resizes: true} }

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
	return waveform.Ordered(waveform.Range{Name: "margin_ms", Low: e.config.MarginMSMin, High: e.config.MarginMSMax})
}

// Apply draws the margins of the two ends.
func (e *effect) Apply(r *waveform.Row) error {
	before := waveform.Samples(r.Uniform(e.config.MarginMSMin, e.config.MarginMSMax), e.rate)
	after := waveform.Samples(r.Uniform(e.config.MarginMSMin, e.config.MarginMSMax), e.rate)
	if r.Power() == 0 {
		return nil
	}
	hop := max(1, waveform.Samples(e.config.FrameMS, e.rate)/4)
	first, end := loud(r.Samples, hop, e.config.ThresholdDB, r.Float64(0, len(r.Samples)/hop+1+4))
	first, end = max(first-before, 0), min(end+after, len(r.Samples))
	r.Report("start_samples", float64(first))
	r.Report("end_samples", float64(len(r.Samples)-end))
	samples := r.Samples
	copy(r.Resize(end-first), samples[first:])
	return nil
}

// loud returns the first sample of the frames that are not silent, and the one after the last. A frame has four hops.
// powers is scratch memory of a value for each hop, of four more than the row has.
func loud(samples []float32, hop int, thresholdDB float64, powers []float64) (first, end int) {
	clear(powers)
	for i := range len(powers) - 4 { // the frame about sample i*hop begins two hops before
		if from := i * hop; from < len(samples) {
			powers[i+2] = waveform.Power(samples[from:min(from+hop, len(samples))])
		}
	}
	frames := len(powers) - 4
	level := func(i int) float64 { return powers[i] + powers[i+1] + powers[i+2] + powers[i+3] }
	loudest := 0.0
	for i := range frames {
		loudest = max(loudest, level(i))
	}
	gate := loudest * waveform.DBToPower(-thresholdDB)
	last := 0
	first = frames
	for i := range frames {
		if level(i) >= gate {
			first, last = min(first, i), i
		}
	}
	return min(first*hop, len(samples)-1), min((last+1)*hop, len(samples))
}
