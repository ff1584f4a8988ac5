package train

import (
	"encoding/binary"
	"math"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Scalars returns what the graph got with the batch in a device slot beside tensors: the seed, and the scalars in the
// order of the bundle's list. The next batch in the slot overwrites them.
func (m *Model) Scalars(slot int) (seed int64, values []float32) {
	for _, w := range m.batchScalars.slots[slot] {
		values = append(values, *w.value)
	}
	return *m.seeds[slot].value, values
}

// Gradients returns the gradients of the last window by parameter, as its update took them but before clipping: the
// mean over its micro-batches, in f32 with accumulation, else in the graph's types. Nothing may have been queued after
// the window.
func (o *Optimizer) Gradients() ([]checkpoint.Tensor, error) {
	w := &o.window
	if err := o.pull(&w.grads.block); err != nil {
		return nil, err
	}
	all := o.player.views("", w.grads)
	if w.acc.arena == nil || o.model.weighted { // of one batch, or divided by the totals of the window in the graph
		return all, nil
	}
	for i, t := range all {
		mean := make([]byte, len(t.Data))
		for at := 0; at < len(mean); at += manifest.F32.Size() {
			sum := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[at:]))
			binary.LittleEndian.PutUint32(mean[at:], math.Float32bits(sum / *w.weight.value))
		}
		all[i].Data = mean
	}
	return all, nil
}
