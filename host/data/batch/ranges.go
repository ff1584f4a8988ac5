package batch

import (
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ranges holds the largest magnitude of each f32 tensor that a stage writes.
type ranges map[string]float32

// rangesOf takes the smaller of two: the smallest max_abs that a port declares which is bound to the tensor, so that
// what a stage of a stranger writes is held to what the next stage expects, and what is usual for such a tensor.
func rangesOf(instances []catalog.Instance, contract manifest.Features) ranges {
	r := ranges{}
	take := func(name string, limit float32) {
		if had, ok := r[name]; limit > 0 && (!ok || limit < had) {
			r[name] = limit
		}
	}
	for _, in := range instances {
		for _, p := range in.Stage.Inputs {
			take(in.Inputs[p.Name], float32(p.MaxAbs))
		}
		for _, p := range in.Stage.Outputs {
			name := in.Outputs[p.Name]
			take(name, float32(p.MaxAbs))
			if p.DType == manifest.F32 {
				take(name, kindOf(name, p).usual(contract))
			}
		}
	}
	return r
}

// kind is what a tensor holds, as far as its range depends on it.
type kind int

const (
	other kind = iota
	sound
	spectrum
	pitch
	energy
)

// kindOf tells the kind of a tensor from its name and from the axes of the port that it is bound to.
func kindOf(tensor string, port manifest.TensorSpec) kind {
	word := func(w string) bool { return strings.Contains(tensor, w) || strings.Contains(port.Name, w) }
	symbol := func(axis int) string {
		if axis < len(port.Shape) {
			return port.Shape[axis].Symbol
		}
		return ""
	}
	switch {
	case port.DType != manifest.F32:
		return other
	case len(port.Shape) == 2 && (symbol(1) == manifest.SymbolWav || word("waveform")):
		return sound
	case len(port.Shape) == 3 && (symbol(2) == "n_mels" || word("mel")):
		return spectrum
	case len(port.Shape) == 2 && word("pitch"):
		return pitch
	case len(port.Shape) == 2 && word("energy"):
		return energy
	}
	return other
}

// soundRange is 18 dB above full scale, as for samples of a recording (docs/audio.md): more than what augmentations
// make of -1 to 1, and far less than samples of 16 bits that were not divided by 32768.
const soundRange = 8

// usual is the range of a tensor of the kind where no plugin declares a smaller one (docs/plugin-protocol.md, Ranges).
func (k kind) usual(contract manifest.Features) float32 {
	switch k {
	case sound:
		return soundRange
	case spectrum:
		return spectrumRange(contract)
	case pitch: // Hz
		return 1e5
	case energy:
		return 1e6
	}
	return 1e12 // an index or a time may be large, 1e30 is a fault
}

// spectrumRange is twice the largest magnitude that the contract allows: the logarithm of the floor, or of a frame in
// which every sample has the largest magnitude and every mel band adds up all bins.
func spectrumRange(f manifest.Features) float32 {
	logarithm := math.Log
	if f.Log == "log10" {
		logarithm = math.Log10
	}
	low := logarithm(max(f.LogFloor, math.SmallestNonzeroFloat64))
	high := logarithm(math.Pow(soundRange*float64(max(f.NFFT, 1)), f.Power) * float64(max(f.NFFT, 1)))
	if n := f.Normalization; n != nil && n.Std > 0 {
		low, high = (low-n.Mean)/n.Std, (high-n.Mean)/n.Std
	}
	return float32(2 * max(math.Abs(low), math.Abs(high), 1))
}
