package report

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// keptBytes is how much of the targets is kept for the baselines, half of it training rows. 80 bands at 86 frames per
// second are 28 kB per second: some 20 minutes of speech each.
const keptBytes = 64 << 20

// Baselines computes the losses of two predictors without a model: the constant that is each band's mean over
// the training rows, and the frame before. A model that is not clearly better than the constant has learned nothing of its
// input; one that is worse than the frame before has not learned to continue.
type Baselines struct {
	list    []manifest.Baseline
	targets map[string]*target
}

// target is what was recorded of one tensor.
type target struct {
	name, lengths string
	bands         int
	sides         [2]side // training, evaluation
}

// side holds rows of one data set, each an f32[frames,bands] as it lay in the slot.
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

// Record copies the valid frames of rows that were not recorded before out of a finished ring slot, until there is no room left.
// rows are the data set's rows of the batch, -1 for an empty one; eval says which data set. Rows are taken as they
// are, with their augmentation.
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
			s.room = 0 // from now on no shorter row either: the recorded rows are the run's first ones
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

// PredictorLosses are means over the valid frames and bands of the recorded rows, NaN without any.
type PredictorLosses struct {
	Rows int
	// Constant is the loss of the training rows' mean per band.
	Constant float64
	// PreviousFrame is the loss of the frame before; before the first stands a frame of zeros, as a decoder sees it.
	PreviousFrame float64
}

// Losses computes the losses from what was recorded. It takes some nanoseconds per value.
func (b *Baselines) Losses() []BaselineLosses {
	out := make([]BaselineLosses, 0, len(b.list))
	for _, base := range b.list {
		t, loss := b.targets[base.Target], lossOf(base)
		mean := t.sides[0].mean(t.bands)
		out = append(out, BaselineLosses{base, t.sides[0].losses(mean, loss), t.sides[1].losses(mean, loss)})
	}
	return out
}
