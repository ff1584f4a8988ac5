package batch

import (
	"encoding/binary"
	"math"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// heard is a waveform that a stage reads, with its lengths.
type heard struct {
	wave, lengths ring.Tensor
	counted       bool
}

// level is the level of one row of a waveform, measured on a sample of its values: this finds a stage that scales or
// deletes sound, and costs nothing beside it.
type level struct{ rms, peak float64 }

const (
	// measured is about how many values of a row are looked at.
	measured = 4096
	// audible is the least RMS of a row that a stage must not turn into silence: -60 dB. A noise gate may do so below
	// it.
	audible = 1e-3
	// louder is the largest factor of the RMS for a result beyond full scale: 40 dB. Below full scale, a stage may
	// bring a row of any level to the usual one.
	louder = 100
	// softer is the largest factor by which a stage may lower the RMS of an audible row: 80 dB. Samples of -1 to 1 that
	// are divided by 32768 are 90 dB softer.
	softer = 1e4
)

// hearing returns the first waveform among the inputs of an instance, in a layout.
func hearing(in catalog.Instance, layout *ring.Layout) (h heard, ok bool) {
	for _, p := range in.Stage.Inputs {
		if kindOf(in.Inputs[p.Name], p) != sound {
			continue
		}
		if h.wave, ok = layout.Find(in.Inputs[p.Name]); ok {
			h.lengths, h.counted = layout.Find(in.Inputs[p.Lengths])
			return h, true
		}
	}
	return h, false
}

// valid returns the bytes of a row up to its length.
func (h *heard) valid(slot []byte, row int) []byte {
	p := port{Tensor: h.wave, lengths: h.lengths, counted: h.counted}
	return p.valid(slot, row)
}

// levelOf measures a row of f32.
func levelOf(row []byte) (l level) {
	n := len(row) / 4
	step := max(1, n/measured) | 1 // odd, so that it meets no period of an even number of samples
	count, sum := 0, 0.0
	for i := 0; i < n; i += step {
		v := float64(floatAt(row, i))
		sum += float64(v * v)
		l.peak = max(l.peak, math.Abs(v))
		count++
	}
	if count > 0 {
		l.rms = math.Sqrt(sum / float64(count))
	}
	return l
}

// constant reports whether all elements of a row of f32 are the same number, of at least two.
func constant(row []byte) bool {
	if len(row) < 8 {
		return false
	}
	first := floatAt(row, 0)
	for i := 1; i < len(row)/4; i++ {
		if floatAt(row, i) != first {
			return false
		}
	}
	return true
}

// zero reports whether all elements of a row of f32 are zeros of either sign.
func zero(row []byte) bool { return floatAt(row, 0) == 0 && (len(row) < 8 || constant(row)) }

func floatAt(row []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
}
