package pitch

import (
	"cmp"
	"math"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config is the configuration of an instance. The zero value of a field means its default in plugin.json.
type Config struct {
	// FMin and FMax are the range of pitches to search, in Hz. Defaults: 65, about C2, and 1000.
	FMin float64 `json:"f_min"`
	FMax float64 `json:"f_max"`
	// Threshold is a normalised difference, from 0 (periodic) to about 1 (noise). The first minimum below it is the
	// period. Default: 0.15.
	Threshold float64 `json:"threshold"`
	// VoicingThreshold is the normalised difference below which the smallest minimum is the period, if none is below
	// Threshold. A frame without such a minimum is unvoiced. Default: 0.4. It must not be below Threshold; if they are
	// equal, only minima below Threshold count.
	VoicingThreshold float64 `json:"voicing_threshold"`
	// FrameLength is the length of a frame in samples. Default: four periods of FMin.
	FrameLength int `json:"frame_length"`
}

// lags is the range of lags, in samples, in which a period is searched.
type lags struct {
	shortest, longest int
}

// complete replaces zeros by the defaults, and refuses values that are impossible at this sample rate.
func (c *Config) complete(sampleRate int) (lags, error) {
	c.FMin = cmp.Or(c.FMin, 65)
	c.FMax = cmp.Or(c.FMax, 1000)
	c.Threshold = cmp.Or(c.Threshold, 0.15)
	c.VoicingThreshold = cmp.Or(c.VoicingThreshold, 0.4)
	rate := float64(sampleRate)
	switch {
	case !(c.FMin >= 20):
		return lags{}, hint.Errorf("use at least 20 Hz, which is below any voice", "config: f_min is %v Hz", c.FMin)
	case !(c.FMin < c.FMax):
		return lags{}, hint.Errorf("an omitted key has its default from plugin.json",
			"config: f_min %v and f_max %v are not a valid band", c.FMin, c.FMax)
	case c.FMax > rate/4:
		return lags{},
			hint.Errorf("detecting a period needs four samples: f_max is at most a quarter of the sample rate",
				"config: f_max %v Hz is above %v Hz, a quarter of sample_rate %d", c.FMax, rate/4, sampleRate)
	case !(c.Threshold > 0 && c.Threshold < 1):
		return lags{}, hint.Errorf("the paper uses 0.1", "config: threshold %v is not between 0 and 1", c.Threshold)
	case !(c.VoicingThreshold >= c.Threshold && c.VoicingThreshold < 1):
		return lags{}, hint.Errorf("if it equals threshold, only frames that are certainly voiced count as voiced",
			"config: voicing_threshold %v is not between threshold %v and 1", c.VoicingThreshold, c.Threshold)
	}
	l := lags{shortest: int(math.Floor(rate / c.FMax)), longest: int(math.Ceil(rate / c.FMin))}
	c.FrameLength = cmp.Or(c.FrameLength, 4*l.longest)
	if c.FrameLength < 2*l.longest {
		return lags{}, hint.Errorf("use a longer frame, or a higher f_min",
			"config: frame_length %d is less than two periods of f_min, %d samples", c.FrameLength, 2*l.longest)
	}
	return l, nil
}
