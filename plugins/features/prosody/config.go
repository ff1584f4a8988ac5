package prosody

import (
	"cmp"
	"math"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config is the configuration of an instance. The zero value of each field means its default, as plugin.json states it.
type Config struct {
	// FMin and FMax bound the pitch that is searched for, in Hz: 65, about C2, and 1000.
	FMin float64 `json:"f_min"`
	FMax float64 `json:"f_max"`
	// Threshold is the normalised difference, from 0 (periodic) to about 1 (noise), below which the first minimum is the
	// period: 0.15.
	Threshold float64 `json:"threshold"`
	// VoicingThreshold is the normalised difference below which the least minimum is the period, where none is below
	// Threshold; a frame without such a minimum has no voice: 0.4. Not below Threshold, which leaves such frames without.
	VoicingThreshold float64 `json:"voicing_threshold"`
	// FrameLength is the length of a frame in samples: four periods of FMin.
	FrameLength int `json:"frame_length"`
}

// lags are the lags, in samples, between which a period is searched for.
type lags struct {
	shortest, longest int
}

// complete puts the defaults where there is a zero, and refuses what cannot be at this sample rate.
func (c *Config) complete(sampleRate int) (lags, error) {
	c.FMin = cmp.Or(c.FMin, 65)
	c.FMax = cmp.Or(c.FMax, 1000)
	c.Threshold = cmp.Or(c.Threshold, 0.15)
	c.VoicingThreshold = cmp.Or(c.VoicingThreshold, 0.4)
	rate := float64(sampleRate)
	switch {
	case !(c.FMin >= 20):
		return lags{}, hint.Errorf("no voice is lower than 20 Hz", "config: f_min is %v Hz", c.FMin)
	case !(c.FMin < c.FMax):
		return lags{}, hint.Errorf("a key that is left out has the default of plugin.json", "config: f_min %v and f_max %v are no band", c.FMin, c.FMax)
	case c.FMax > rate/4:
		return lags{}, hint.Errorf("a period needs four samples to be seen: f_max is at most a quarter of the sample rate",
			"config: f_max %v Hz is above %v Hz, a quarter of sample_rate %d", c.FMax, rate/4, sampleRate)
	case !(c.Threshold > 0 && c.Threshold < 1):
		return lags{}, hint.Errorf("the paper uses 0.1", "config: threshold %v does not lie between 0 and 1", c.Threshold)
	case !(c.VoicingThreshold >= c.Threshold && c.VoicingThreshold < 1):
		return lags{}, hint.Errorf("equal to threshold, it leaves only frames with a voice that are sure",
			"config: voicing_threshold %v does not lie between threshold %v and 1", c.VoicingThreshold, c.Threshold)
	}
	l := lags{shortest: int(math.Floor(rate / c.FMax)), longest: int(math.Ceil(rate / c.FMin))}
	c.FrameLength = cmp.Or(c.FrameLength, 4*l.longest)
	if c.FrameLength < 2*l.longest {
		return lags{}, hint.Errorf("use a longer frame, or a higher f_min",
			"config: frame_length %d is less than two periods of f_min, %d samples", c.FrameLength, 2*l.longest)
	}
	return l, nil
}
