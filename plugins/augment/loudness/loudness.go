// Package loudness implements the stage "loudness", which brings each row to a random integrated loudness by one gain.
//
// The loudness is that of ITU-R BS.1770-4 and EBU R 128 for one channel, in LUFS: the mean square of the row after the
// K-weighting, over blocks of 400 ms that begin every 100 ms, without those below -70 LUFS, and then without those more
// than 10 LU below the mean of the others. The K-weighting is computed for the rate of the waveforms, from the
// parameters of the analogue filters: at 48 kHz it has the coefficients of the recommendation. A row of less than 400
// ms is one block.
//
// A row that is silent, or below -70 LUFS throughout, has no loudness and stays as it is. The gain is reduced where the
// peak of the row would exceed max_peak_db.
package loudness

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	LUFSMin   float64 `json:"lufs_min"`
	LUFSMax   float64 `json:"lufs_max"`
	MaxPeakDB float64 `json:"max_peak_db"`
}

func defaults() config { return config{LUFSMin: -28, LUFSMax: -18} }

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config config
	meter  meter
}

// Configure refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	if err := cfg.Decode(&e.config); err != nil {
		return err
	}
	e.meter = newMeter(cfg.Features.SampleRate)
	return waveform.Ordered(waveform.Range{Name: "lufs", Low: e.config.LUFSMin, High: e.config.LUFSMax})
}

// Apply draws the loudness.
func (e *effect) Apply(r *waveform.Row) error {
	target := r.Uniform(e.config.LUFSMin, e.config.LUFSMax)
	measured := e.meter.integrated(r.Samples, r.Float64(0, e.meter.steps(len(r.Samples))))
	if math.IsInf(measured, -1) {
		return nil
	}
	r.Report("lufs", measured)
	gain := target - measured
	if peak := 20 * math.Log10(float64(vector.Peak(r.Samples))); peak+gain > e.config.MaxPeakDB {
		gain = e.config.MaxPeakDB - peak
	}
	r.Report("gain_db", gain)
	waveform.Scale(r.Samples, waveform.DBToAmplitude(gain))
	return nil
}
