package train

import "github.com/xtts-host/xtts-host/host/train/checkpoint"

// Scalars returns what the graph got with the batch in a device slot beside tensors: the seed, and the scalars in the
// order of the bundle's list. The next batch in the slot overwrites them.
func (m *Model) Scalars(slot int) (seed int64, values []float32) {
	return *m.seeds[slot].value, m.batchScalars.read(slot)
}

// Gradients returns the gradients of the last window by parameter, as its update took them but before clipping: the
// mean over its micro-batches and ranks, in f32 with accumulation, else in the graph's types. Nothing may have been
// queued after the window.
func (o *Optimizer) Gradients() ([]checkpoint.Tensor, error) {
	w := &o.window
	if err := o.pull(&w.grads.block); err != nil {
		return nil, err
	}
	all := o.player.views("", w.grads)
	// of one batch, or divided by the totals of the window in the graph
	if w.weight.value == nil || o.model.weighted {
		return all, nil
	}
	for i, t := range all {
		mean := numbers(t.Data, t.DType)
		for at := range mean {
			mean[at] /= *w.weight.value
		}
		all[i].Data = make([]byte, len(t.Data))
		setNumbers(all[i].Data, t.DType, mean)
	}
	return all, nil
}
