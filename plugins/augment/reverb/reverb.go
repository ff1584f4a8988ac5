// Package reverb implements the stage "reverb", which convolves the rows with recorded impulse responses of rooms.
//
// A row gets one response, drawn uniformly from the folder. The largest sample of the response counts as the direct
// sound: the row is not delayed by what comes before it. The response is cut length_ms after the direct sound. The row
// keeps its length, so the end of the reverberation is cut, and its power.
package reverb

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/convolve"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/recordings"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// folder is the data folder, as named in plugin.json.
const folder = "responses"

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	LengthMS float64 `json:"length_ms"`
	MemoryMB int     `json:"memory_mb"`
}

func defaults() config { return config{LengthMS: 1500, MemoryMB: 512} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config    config
	length    int // samples after the direct sound
	responses *recordings.Folder
}

// Configure reads the responses. It refuses a folder without any.
func (e *effect) Configure(cfg *stage.Config) (err error) {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	e.length = max(1, waveform.Samples(e.config.LengthMS, cfg.Features.SampleRate))
	e.responses, err = recordings.Open(cfg, folder, e.config.MemoryMB)
	return err
}

// longestBefore is how much of a response may lie before the direct sound, in samples.
const longestBefore = 1 << 14

// Apply draws the response.
func (e *effect) Apply(r *waveform.Row) error {
	which := r.Below(e.responses.Count())
	r.ReportName("response", e.responses.Name(which))
	samples := r.Float32(0, min(e.responses.Length(which), longestBefore+e.length))
	if err := e.responses.Read(samples, which, 0); err != nil {
		return err
	}
	direct := peak(samples)
	samples = samples[:min(len(samples), direct+e.length)]
	h := r.Float64(0, len(samples))
	for i, x := range samples {
		h[i] = float64(x)
	}
	convolve.Keep(r, h, direct)
	return nil
}

// peak returns the index of the first sample of the largest magnitude.
func peak(samples []float32) int {
	largest, at := float32(0), 0
	for i, x := range samples {
		if x > largest || -x > largest {
			largest, at = max(x, -x), i
		}
	}
	return at
}
