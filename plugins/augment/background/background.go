// Package background implements the stage "background", which mixes recordings of a folder into the rows: noise,
// music, or other speakers.
//
// A row gets a random number of recordings, each drawn uniformly from the folder, from a random position on. A
// recording that is shorter than the row begins anew at its end. Each part is brought to the same power before they are
// added, so with several recordings of speech the sum is the babble of as many speakers. The sum is added at a
// signal-to-noise ratio that is uniform in dB and exact over the whole row. A silent row gets nothing.
//
// Other speakers come from files and not from other rows of the batch: which rows are in a batch depends on the batch
// size, the buckets and on which clips have been rejected, and a row must have the same bits in any batch.
package background

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/recordings"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// folder is the data folder, as named in plugin.json.
const folder = "background"

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	SNRDBMin float64 `json:"snr_db_min"`
	SNRDBMax float64 `json:"snr_db_max"`
	CountMin int     `json:"count_min"`
	CountMax int     `json:"count_max"`
	MemoryMB int     `json:"memory_mb"`
}

func defaults() config {
	return config{SNRDBMin: 5, SNRDBMax: 30, CountMin: 1, CountMax: 1, MemoryMB: 512}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config     config
	recordings *recordings.Folder
}

// Configure reads the recordings. It refuses ranges in the wrong order, and a folder without a recording.
func (e *effect) Configure(cfg *stage.Config) error {
	c := &e.config
	if err := cfg.Decode(c); err != nil {
		return err
	}
	err := waveform.Ordered(waveform.Range{Name: "snr_db", Low: c.SNRDBMin, High: c.SNRDBMax},
		waveform.Range{Name: "count", Low: float64(c.CountMin), High: float64(c.CountMax)})
	if err != nil {
		return err
	}
	e.recordings, err = recordings.Open(cfg, folder, c.MemoryMB)
	return err
}

// Apply draws the ratio and the number of recordings, then each recording with its position.
func (e *effect) Apply(r *waveform.Row) error {
	snr := r.Uniform(e.config.SNRDBMin, e.config.SNRDBMax)
	count := r.Integer(e.config.CountMin, e.config.CountMax)
	if r.Power() == 0 {
		return nil
	}
	r.Report("snr_db", snr)
	r.Report("count", float64(count))
	sum, part := r.Float64(0, len(r.Samples)), r.Float32(0, len(r.Samples))
	clear(sum)
	for i := range count {
		which := r.Below(e.recordings.Count())
		from := r.Below(e.recordings.Length(which))
		if i == 0 {
			r.ReportName("recording", e.recordings.Name(which))
			r.Report("from_sample", float64(from))
		}
		if err := e.recordings.Read(part, which, from); err != nil {
			return err
		}
		power := waveform.Power(part)
		if power == 0 {
			continue
		}
		scale := 1 / math.Sqrt(power)
		for k, x := range part {
			sum[k] += float64(scale * float64(x))
		}
	}
	r.Mix(sum, waveform.Power(sum), snr)
	return nil
}
