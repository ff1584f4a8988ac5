package mel

import (
	"math"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// filterbank holds triangular mel filters without their zeros: each band weighs a short run of bins.
type filterbank struct {
	bands      []Band
	first, end int // the bins that at least one band uses
}

// Band is a mel filter.
type Band struct {
	First   int // bin of the first weight
	Weights []float64
}

// newFilterbank follows the definition of librosa.filters.mel: the edges of the bands are equally spaced on the mel
// scale, and a filter rises from its lower edge to its centre and falls to its upper edge, linearly in Hz.
func newFilterbank(f manifest.Features) (filterbank, error) {
	toMel, toHz := slaneyMel, slaneyHz
	if f.MelScale == "htk" {
		toMel, toHz = htkMel, htkHz
	}
	low, high := toMel(f.FMin), toMel(f.FMax)
	edge := func(i int) float64 { return toHz(low + (high-low)*float64(i)/float64(f.NMels+1)) }
	spacing := float64(f.SampleRate) / float64(f.NFFT)

	bank := filterbank{bands: make([]Band, f.NMels), first: f.NFFT/2 + 1}
	for i := range bank.bands {
		lower, centre, upper := edge(i), edge(i+1), edge(i+2)
		area := 1.0
		if f.MelNorm == "slaney" {
			area = 2 / (upper - lower)
		}
		b := &bank.bands[i]
		for k := range f.NFFT/2 + 1 {
			hz := float64(k) * spacing
			w := math.Min((hz-lower)/(centre-lower), (upper-hz)/(upper-centre))
			if w <= 0 {
				continue
			}
			if b.Weights == nil {
				b.First = k
			}
			b.Weights = append(b.Weights, w*area)
		}
		if b.Weights == nil {
			return bank, hint.Errorf("the band would be silent in every clip: use a smaller n_mels or a larger n_fft",
				"features: mel band %d of %d (%.1f to %.1f Hz) contains no FFT bin: n_fft %d at %d Hz has one every "+
					"%.1f Hz",
				i, f.NMels, lower, upper, f.NFFT, f.SampleRate, spacing)
		}
		bank.first = min(bank.first, b.First)
		bank.end = max(bank.end, b.First+len(b.Weights))
	}
	return bank, nil
}

// apply returns the weighted sum of one band.
func (f *filterbank) apply(i int, spectrum []float64) float64 {
	b := &f.bands[i]
	bins := spectrum[b.First:][:len(b.Weights)]
	var sum float64
	for k, w := range b.Weights {
		sum += float64(w * bins[k])
	}
	return sum
}

// The scale of Slaney's Auditory Toolbox (1998): linear below 1000 Hz, which is 15 mels, then 27 mels per factor of
// 6.4.
const (
	slaneyLinear = 200.0 / 3 // Hz per mel
	slaneyBreak  = 1000.0
)

var slaneyStep = math.Log(6.4) / 27

func slaneyMel(hz float64) float64 {
	if hz < slaneyBreak {
		return hz / slaneyLinear
	}
	return slaneyBreak/slaneyLinear + math.Log(hz/slaneyBreak)/slaneyStep
}

func slaneyHz(mel float64) float64 {
	if mel < slaneyBreak/slaneyLinear {
		return mel * slaneyLinear
	}
	return slaneyBreak * math.Exp((mel-slaneyBreak/slaneyLinear)*slaneyStep)
}

// The scale of the HTK Book (Young et al.): 2595 log10(1 + f/700).
func htkMel(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }
func htkHz(mel float64) float64 { return 700 * (math.Pow(10, mel/2595) - 1) }
