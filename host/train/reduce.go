package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Reducer sums the accumulated gradients of a window over the ranks, before the norm.
//
// A rank's gradients are weighted by its part of the loss weight, and the weight and the weighted loss are summed with
// them. So the norm divides by the weight of all ranks, and a value that is not finite on one rank is not finite on
// any: all ranks skip the window.
type Reducer interface {
	// Sum queues the replacement of each part by its sum over all ranks, with the same bits on each rank. All ranks
	// call it once per window, with parts of the same sizes.
	Sum(parts []Part) error
}

// Part is a contiguous range of f32 values in the memory of training: gradients, or a single value.
type Part struct {
	// Host is the memory on the CPU; nil on a GPU.
	Host []float32
	// Address is the address on a GPU.
	Address  uint64
	Elements int
}

// share is the data that the ranks of a world sum.
type share struct {
	reducer Reducer // nil for none
	parts   []Part
}

// sum sums the window over the ranks.
func (s *share) sum() error {
	if s.reducer == nil {
		return nil
	}
	return s.reducer.Sum(s.parts)
}

// Share makes every Step sum the window over the ranks of a world. The optimizer must accumulate, also with one
// micro-batch per window, because accumulation weights the gradients.
func (o *Optimizer) Share(r Reducer) error {
	w := &o.window
	if w.acc.arena == nil {
		return errors.New("an optimizer that does not accumulate has no gradients to share")
	}
	w.share = share{r, []Part{w.acc.part(w.acc.span(o.player.arena.Trained()))}}
	for _, sum := range []word[float32]{w.loss, w.weight} {
		w.share.parts = append(w.share.parts, o.out.part(ortgraphs.Span{DType: manifest.F32, Offset: sum.at, Elements: 1}))
	}
	return nil
}

// part returns a span of a block.
func (b *block) part(s ortgraphs.Span) Part {
	if b.dev != nil {
		return Part{Address: uint64(b.dev.Pointer()) + uint64(s.Offset), Elements: s.Elements}
	}
	return Part{Host: ort.View[float32](b.host[s.Offset:][:s.Bytes()]), Elements: s.Elements}
}

// sharedLoss returns the loss of the last Step's window over the rows of all ranks; ok is false if there is one rank.
func (w *window) sharedLoss() (loss float64, ok bool) {
	if w.share.reducer == nil {
		return 0, false
	}
	return float64(*w.loss.value) / float64(*w.weight.value), true
}
