package waveaug

import (
	"math"
	"math/rand/v2"
)

// draws is what happens to one row, but for the noise's samples.
type draws struct {
	factor float64 // gain and polarity
	noisy  bool
	snr    float64 // ratio of the powers of row and noise; of no meaning unless noisy
}

// draw takes five uniform numbers from r, always and in this order: whether the level changes, by how much, whether there
// is noise, how much, whether the polarity flips. The noise's samples come behind them. So no effect's
// configuration changes what another one draws.
func (c config) draw(r *rand.Rand) draws {
	gain, gainDB := r.Float64(), uniform(r, c.GainDBMin, c.GainDBMax)
	noise, snrDB := r.Float64(), uniform(r, c.SNRDBMin, c.SNRDBMax)
	polarity := r.Float64()

	// Float64 is below 1: a probability of 0 is never, one of 1 is always.
	d := draws{factor: 1, noisy: noise < c.NoiseProbability, snr: math.Pow(10, snrDB/10)}
	if gain < c.GainProbability {
		d.factor = math.Pow(10, gainDB/20)
	}
	if polarity < c.PolarityProbability {
		d.factor = -d.factor
	}
	return d
}

func uniform(r *rand.Rand, low, high float64) float64 {
	return low + float64((high-low)*r.Float64())
}
