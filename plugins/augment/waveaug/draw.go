package waveaug

import (
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// draws are the random decisions for one row, except the samples of the noise.
type draws struct {
	factor float64 // gain and polarity
	noisy  bool
	snr    float64 // power ratio of row and noise; only meaningful if noisy

	gainDB, snrDB float64 // the same in dB
	inverted      bool
}

// report tells the host what was drawn for a row.
func (d draws) report(b *stage.Batch, row int) {
	b.Report(row, "gain_db", d.gainDB)
	if d.noisy {
		b.Report(row, "snr_db", d.snrDB)
	}
	b.Report(row, "inverted", d.inverted)
}

// draw takes five uniform numbers from r, always in this order: whether the level changes, by how much, whether noise
// is added, how much, whether the polarity is inverted. The samples of the noise are drawn after them. So the
// configuration of one effect does not change the draws of another.
func (c config) draw(r *rand.Rand) draws {
	gain, gainDB := r.Float64(), uniform(r, c.GainDBMin, c.GainDBMax)
	noise, snrDB := r.Float64(), uniform(r, c.SNRDBMin, c.SNRDBMax)
	polarity := r.Float64()

	// Float64 is below 1, so a probability of 0 means never and 1 means always.
	d := draws{factor: 1, noisy: noise < c.NoiseProbability, snr: math.Pow(10, snrDB/10), snrDB: snrDB}
	if gain < c.GainProbability {
		d.factor, d.gainDB = math.Pow(10, gainDB/20), gainDB
	}
	if polarity < c.PolarityProbability {
		d.factor, d.inverted = -d.factor, true
	}
	return d
}

func uniform(r *rand.Rand, low, high float64) float64 {
	return low + float64((high-low)*r.Float64())
}
