package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Ranks combines values of the processes that train one model together. All ranks make the same calls in the same
// order, with parts of the same sizes. A call queues its work, and every rank gets the same bits.
type Ranks interface {
	// Sum replaces each part by its sum over all ranks.
	Sum(parts []Part) error
	// Broadcast replaces each part by that of rank 0.
	Broadcast(parts []Part) error
}

// Part is a contiguous range of f32 values in the memory of training: gradients, state, or a single value.
type Part struct {
	// Host is the memory on the CPU; nil on a GPU.
	Host []float32
	// Address is the address on a GPU.
	Address  uint64
	Elements int
}

// share is what an optimizer has in common with those of the other ranks.
//
// The gradients of a window are summed over the ranks before the norm. A rank's gradients are weighted by its part of
// the loss weight, and the weight and the weighted loss and metrics are summed with them. So the norm divides by the
// weight of all ranks, and a value that is not finite on one rank is not finite on any: all ranks skip the window.
type share struct {
	graphs *graphs // of the optimizer
	ranks  Ranks   // nil alone
	parts  []Part  // summed at the end of a window

	in      *words // sent with each micro-batch
	rows    word[float32]
	out     *words // received at the end of a window
	metrics []metricSum
	state   stateMean
}

// Share makes the optimizer one of those of several ranks. It must accumulate, also with one micro-batch per window,
// because accumulation weights the gradients. Prepare comes later.
func (o *Optimizer) Share(r Ranks) error {
	w := &o.window
	if w.acc.arena == nil {
		return errors.New("an optimizer that does not accumulate has no gradients to share")
	}
	s := &w.share
	s.ranks, s.parts = r,
		[]Part{w.acc.part(w.acc.span(o.player.arena.Trained())), o.out.one(w.loss), o.out.one(w.weight)}
	s.in, s.out = o.words(3), o.words(len(o.model.metrics))
	s.rows = newWord[float32](&o.memory, s.in, manifest.F32)
	s.bindMetrics(o)
	s.state.bind(o)
	return o.err
}

// add queues what the last micro-batch adds to the window beside gradients.
func (s *share) add(o *Optimizer, first bool) error {
	if s.ranks == nil {
		return nil
	}
	*s.rows.value = float32(o.model.rows)
	return errors.Join(o.send(s.in), s.addMetrics(&o.memory, first), s.state.average(o))
}

// sum queues the sums over the ranks at the end of the window.
func (s *share) sum(m *memory) error {
	if s.ranks == nil {
		return nil
	}
	return errors.Join(s.ranks.Sum(s.parts), m.receive(s.out))
}

// rehearsals lists what a window may run.
func (s *share) rehearsals(o *Optimizer) (all []rehearsal) {
	for i := range s.metrics {
		for later := range s.metrics[i].add {
			all = append(all,
				rehearsal{&s.metrics[i].add[later], "metrics", []region{{s.out.dev, 0, s.out.used, manifest.F32}}})
		}
	}
	return append(all, s.state.rehearsals(o)...)
}

// part returns a span of a block.
func (b *block) part(s ortgraphs.Span) Part {
	if b.dev != nil {
		return Part{Address: uint64(b.dev.Pointer()) + uint64(s.Offset), Elements: s.Elements}
	}
	return Part{Host: ort.View[float32](b.host[s.Offset:][:s.Bytes()]), Elements: s.Elements}
}

// one returns a word of the block.
func (w *words) one(f word[float32]) Part {
	return w.part(ortgraphs.Span{DType: manifest.F32, Offset: f.at, Elements: 1})
}

// metricSum sums a metric over the batches of a window and, at its end, over the ranks: each value times the loss
// weight of its batch.
type metricSum struct {
	metric int // index in the bundle's list
	sum    word[float32]
	add    [2]execution // of the window's first micro-batch, and of the others
}

// weightedSumGraph is the name of a graph that is made here, not exported.
const weightedSumGraph = "weighted sum"

// bindMetrics makes the sums of the player's metrics.
func (s *share) bindMetrics(o *Optimizer) {
	var firsts [2]*ort.Tensor
	for later, v := range []uint8{1, 0} {
		w := newWord[uint8](&o.memory, s.in, manifest.Bool)
		*w.value = v
		firsts[later] = w.tensor
	}
	for i, value := range o.model.metrics {
		if o.model.players[o.model.owners[i]] != o.player {
			continue
		}
		m := metricSum{metric: i, sum: newWord[float32](&o.memory, s.out, manifest.F32)}
		for later, first := range firsts {
			m.add[later] = o.execution(s.graphs.session(graph{name: weightedSumGraph}), tensors{
				"sum": m.sum.tensor, "value": value.tensor, "weight": o.model.weight.tensor, "first": first,
			}, tensors{"sum_out": m.sum.tensor})
		}
		if s.metrics = append(s.metrics, m); o.err == nil {
			s.parts = append(s.parts, s.out.one(m.sum))
		}
	}
}

// addMetrics queues the addition of the last batch's metrics.
func (s *share) addMetrics(m *memory, first bool) error {
	for _, sum := range s.metrics {
		e := sum.add[1]
		if first {
			e = sum.add[0]
		}
		if err := m.run(e); err != nil {
			return err
		}
	}
	return nil
}

// shared replaces the metrics of a window by those over the rows of all ranks, if there are several, and returns the
// last player's loss over them.
func (all Optimizers) shared(loss float64, metrics []float64) float64 {
	for _, o := range all {
		w := &o.window
		if w.share.ranks == nil {
			return loss
		}
		weight := float64(*w.weight.value)
		loss = float64(*w.loss.value) / weight
		for _, m := range w.share.metrics {
			metrics[m.metric] = float64(*m.sum.value) / weight
		}
	}
	return loss
}
