package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Reducer adds up what the ranks of a world have accumulated in a window, before its norm is taken.
//
// A rank's gradients come weighted by its part of the loss weight, and that weight and the weighted loss come with them. So the norm
// divides by the weight of all ranks, and a value that is not finite on one rank is not finite on any: all skip the window.
type Reducer interface {
	// Sum queues that each part becomes its sum over all ranks, with the same bits on each of them. All ranks call it once for each
	// window, with parts of the same sizes.
	Sum(parts []Part) error
}

// Part is f32 values in the memory that a rank trains in: a contiguous range of the gradients, or a single value.
type Part struct {
	// Host is where they stand on the CPU; nil on a GPU.
	Host []float32
	// Address is where they stand on a GPU.
	Address  uint64
	Elements int
}

// share is what the ranks of a world add up.
type share struct {
	reducer Reducer // nil for none
	parts   []Part
}

// sum adds up the window over the ranks.
func (s *share) sum() error {
	if s.reducer == nil {
		return nil
	}
	return s.reducer.Sum(s.parts)
}

// Share has every Step add up the window over the ranks of a world. The optimizer must accumulate, also in windows of one micro-batch:
// that is what weights the gradients.
func (o *Optimizer) Share(r Reducer) error {
	w := &o.window
	if w.acc.arena == nil {
		return errors.New("an optimizer that does not accumulate has no gradients to share")
	}
	w.share = share{r, []Part{w.acc.part(w.acc.span(o.model.arena.Trained()))}}
	for _, sum := range []word[float32]{w.loss, w.weight} {
		w.share.parts = append(w.share.parts, o.out.part(ortgraphs.Span{DType: manifest.F32, Offset: sum.at, Elements: 1}))
	}
	return nil
}

// part is a span of a block.
func (b *block) part(s ortgraphs.Span) Part {
	if b.dev != nil {
		return Part{Address: uint64(b.dev.Pointer()) + uint64(s.Offset), Elements: s.Elements}
	}
	return Part{Host: ort.View[float32](b.host[s.Offset:][:s.Bytes()]), Elements: s.Elements}
}

// sharedLoss returns the loss of the last Step's window over the rows of all ranks; ok is false where there is one rank.
func (w *window) sharedLoss() (loss float64, ok bool) {
	if w.share.reducer == nil {
		return 0, false
	}
	return float64(*w.loss.value) / float64(*w.weight.value), true
}
