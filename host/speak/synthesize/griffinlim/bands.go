package griffinlim

import (
	"math"

	"github.com/xtts-host/xtts-host/shared/mel"
)

// rounds of the algorithm of Richardson and Lucy.
const rounds = 50

// bands finds the magnitudes of which a frame of a log-mel spectrogram is made. There are fewer bands than bins, so
// many magnitudes have the same bands.
type bands struct {
	mel.Tables
	power  float64
	areas  []float64 // of each band: the sum of its weights
	shares []float64 // of each bin: the sum of its weights in all bands
	most   []float64 // of each band: that of a waveform of full scale
}

func newBands(e *mel.Extractor) *bands {
	f := e.Features()
	b := &bands{Tables: e.Tables(), power: f.Power, shares: make([]float64, f.NFFT/2+1)}
	loudest := 0.0
	for _, w := range b.Window {
		loudest += w
	}
	for _, band := range b.Bands {
		area := 0.0
		for i, w := range band.Weights {
			area += w
			b.shares[band.First+i] += w
		}
		b.areas = append(b.areas, area)
		b.most = append(b.most, area*math.Pow(loudest, f.Power))
	}
	return b
}

// bandScratch is what magnitudes needs for a frame.
type bandScratch struct {
	want, ratios []float64 // of each band
	means        []float64 // of each bin
}

func (b *bands) scratch() bandScratch {
	return bandScratch{make([]float64, len(b.Bands)), make([]float64, len(b.Bands)), make([]float64, len(b.shares))}
}

// magnitudes writes those of a frame. The first ones are constant in a band; then the algorithm of Richardson (1972)
// and Lucy (1974) makes the bands agree, without negative values: x *= transpose(A) (y / A x) / transpose(A) 1.
func (b *bands) magnitudes(dst []float64, frame []float32, own bandScratch) {
	want, ratios := own.want, own.ratios
	for i, x := range frame {
		want[i] = math.Min(math.Exp((float64(x)-b.Shift)/b.Scale), b.most[i])
		ratios[i] = want[i] / b.areas[i]
	}
	for k := range dst {
		dst[k] = 0
		if b.shares[k] > 0 {
			dst[k] = 1
		}
	}
	b.multiply(dst, own)
	for range rounds {
		for i, band := range b.Bands {
			sum := 0.0
			for k, w := range band.Weights {
				sum += w * dst[band.First+k]
			}
			ratios[i] = want[i] / math.Max(sum, math.SmallestNonzeroFloat32)
		}
		b.multiply(dst, own)
	}
	if b.power == 2 {
		for k, x := range dst {
			dst[k] = math.Sqrt(x)
		}
	}
}

// multiply multiplies each bin by the mean of the ratios of its bands.
func (b *bands) multiply(dst []float64, own bandScratch) {
	means := own.means
	clear(means)
	for i, band := range b.Bands {
		for k, w := range band.Weights {
			means[band.First+k] += w * own.ratios[i]
		}
	}
	for k, share := range b.shares {
		if share > 0 {
			dst[k] *= means[k] / share
		}
	}
}
