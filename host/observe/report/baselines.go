package report

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// keptBytes is the number of bytes of targets that are kept for the baselines, half of them from training rows. 80
// bands at 86 frames per second are 28 kB per second, so each half has about 20 minutes of speech.
const keptBytes = 64 << 20

// Baselines computes the losses of two predictors without a model: the mean of each band over the training rows (the
// constant), and the previous frame. A model that is not clearly better than the constant has learned nothing from its
// input; one that is worse than the previous frame has not learned to continue.
type Baselines struct {
	list    []manifest.Baseline
	targets map[string]*target
}

// target has the recorded frames of one tensor.
type target struct {
	name, lengths string
	bands         int
	sides         [2]side // training, evaluation
}

// side has rows of one data set, each an f32[frames,bands] in the layout of the slot.
type side struct {
	seen map[int32]bool
	rows [][]byte
	room int // bytes
}

// NewBaselines prepares the baselines of a bundle with these inputs. A target must be an f32[B,T,n] input with lengths.
func NewBaselines(list []manifest.Baseline, inputs []manifest.TensorSpec) (*Baselines, error) {
	b := &Baselines{list: list, targets: map[string]*target{}}
	for i, base := range list {
		at := slices.IndexFunc(inputs, func(t manifest.TensorSpec) bool { return t.Name == base.Target })
		if at < 0 {
			return nil, fmt.Errorf("baselines[%d]: target %q is no input of the bundle", i, base.Target)
		}
		in := inputs[at]
		if in.DType != manifest.F32 || len(in.Shape) != 3 || in.Shape[2].Symbol != "" || in.Lengths == "" {
			return nil, fmt.Errorf("baselines[%d]: target %s is no f32[B,T,n] of a fixed n and with lengths", i, in)
		}
		if lossOf(base) == nil {
			return nil, fmt.Errorf("baselines[%d]: unknown loss %q", i, base.Loss)
		}
		b.targets[in.Name] = &target{name: in.Name, lengths: in.Lengths, bands: in.Shape[2].Size}
	}
	for _, t := range b.targets {
		for i := range t.sides {
			t.sides[i] = side{seen: map[int32]bool{}, room: keptBytes / 2 / len(b.targets)}
		}
	}
	return b, nil
}

// Record copies the valid frames of rows that were not recorded before from a finished ring slot, until the room is
// used up. rows are the data set's rows of the batch, -1 for an empty one; eval says which data set. Rows are recorded
// with their augmentation.
func (b *Baselines) Record(eval bool, rows []int32, layout *ring.Layout, slot []byte) {
	which := 0
	if eval {
		which = 1
	}
	for _, t := range b.targets {
		t.record(&t.sides[which], rows, layout, slot)
	}
}

func (t *target) record(s *side, rows []int32, layout *ring.Layout, slot []byte) {
	if s.room == 0 {
		return
	}
	tensor, _ := layout.Find(t.name) // every layout has the bundle's inputs
	data, lengths := tensor.In(slot), layout.View(slot, t.lengths)
	frames, frameBytes := tensor.Shape[1], 4*t.bands
	for i, row := range rows {
		if row < 0 || s.seen[row] {
			continue
		}
		n := int(int32(binary.LittleEndian.Uint32(lengths[4*i:])))
		used := min(max(n, 0), frames) * frameBytes
		if used > s.room {
			s.room = 0 // from now on, shorter rows are not recorded either: only the first rows of the run are
			return
		}
		start := i * frames * frameBytes
		s.seen[row] = true
		s.rows = append(s.rows, slices.Clone(data[start:start+used]))
		s.room -= used
	}
}

// BaselineLosses are the losses of one baseline's predictors.
type BaselineLosses struct {
	manifest.Baseline
	Train, Eval PredictorLosses
}

// PredictorLosses are means over the valid frames and bands of the recorded rows; NaN if no row was recorded.
type PredictorLosses struct {
	Rows int
	// Constant is the loss of predicting the mean of each band over the training rows.
	Constant float64
	// PreviousFrame is the loss of predicting the previous frame; the frame before the first is zeros, as for a
	// decoder.
	PreviousFrame float64
}

// Losses computes the losses of the recorded rows. It takes a few nanoseconds per value.
func (b *Baselines) Losses() []BaselineLosses {
	out := make([]BaselineLosses, 0, len(b.list))
	for _, base := range b.list {
		t, loss := b.targets[base.Target], lossOf(base)
		mean := t.sides[0].mean(t.bands)
		out = append(out, BaselineLosses{base, t.sides[0].losses(mean, loss), t.sides[1].losses(mean, loss)})
	}
	return out
}
