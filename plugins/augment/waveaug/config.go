package waveaug

import "github.com/xtts-host/xtts-host/shared/hint"

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	GainProbability     float64 `json:"gain_probability"`
	GainDBMin           float64 `json:"gain_db_min"`
	GainDBMax           float64 `json:"gain_db_max"`
	NoiseProbability    float64 `json:"noise_probability"`
	SNRDBMin            float64 `json:"snr_db_min"`
	SNRDBMax            float64 `json:"snr_db_max"`
	PolarityProbability float64 `json:"polarity_probability"`
}

// defaults are the defaults in plugin.json.
func defaults() config {
	return config{
		GainProbability: 0.5, GainDBMin: -6, GainDBMax: 6,
		NoiseProbability: 0.5, SNRDBMin: 15, SNRDBMax: 40,
		PolarityProbability: 0.5,
	}
}

const bothEnds = "an omitted key has its default from plugin.json: give both ends of the range"

// check refuses what a JSON Schema cannot: a lower bound above the upper bound.
func (c config) check() error {
	if c.GainDBMin > c.GainDBMax {
		return hint.Errorf(bothEnds, "config: gain_db_min %g is above gain_db_max %g", c.GainDBMin, c.GainDBMax)
	}
	if c.SNRDBMin > c.SNRDBMax {
		return hint.Errorf(bothEnds, "config: snr_db_min %g is above snr_db_max %g", c.SNRDBMin, c.SNRDBMax)
	}
	return nil
}
