package train

import (
	"errors"
	"slices"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/peers"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Ranks combines values of the processes that train one model together. All ranks make the same calls in the same
// order, with parts of the same sizes and types. A call queues its work, and every rank gets the same bits.
type Ranks interface {
	// Sum replaces each part by its sum over all ranks, on a stream of the GPU after the work that is queued there; on
	// the CPU, on is nil. Values in f32 are added in the order of the ranks. Values in
	// bf16 are widened to f32, added in f32 in the order of the ranks, and the sum is rounded once, to the nearest
	// bf16, and to the even one of two that are as near. A sum with a value that is not finite is not finite. On GPUs
	// a library may add in another order, which gives other bits.
	Sum(on gpu.Stream, parts []Part) error
	// Broadcast replaces each part by that of rank 0, on the model's stream.
	Broadcast(parts []Part) error
}

// Reach is implemented by Ranks whose GPUs may reach each other's memory.
type Reach interface {
	// Window returns memory with room for so many bytes of each other rank. All ranks call it together, and all get a
	// window or none: then the error matches peers.ErrApart.
	Window(bytes int) (*peers.Window, error)
}

// Part is a contiguous range of values in the memory of training: gradients, state, or a single value.
type Part struct {
	DType    manifest.DType // F32 or BF16
	Elements int
	// Host is the memory on the CPU, of so many elements, aligned to their size; nil on a GPU.
	Host []byte
	// Address is the address on a GPU, in a block of its memory.
	Address uint64
	Block   gpu.Memory
}

// share is what an optimizer has in common with those of the other ranks.
//
// The gradients of a window are summed over the ranks before the norm. A rank's gradients are weighted by its part of
// the loss weight, and the weight and the weighted loss and metrics are summed with them. So the norm divides by the
// weight of all ranks, and a value that is not finite on one rank is not finite on any: all ranks skip the window.
type share struct {
	graphs *graphs // of the optimizer
	ranks  Ranks   // nil alone
	parts  []Part  // summed at the end of a window, unless the training graph does
	beside *beside // nil without

	in      *words // sent to the device: a constant, and the rows of a micro-batch
	rows    word[float32]
	out     *words // received at the end of a window
	metrics []metricSum
	weigh   weighing
	state   stateMean
	tally   tallying
}

// Share makes the optimizer one of those of several ranks. Prepare comes later.
func (o *Optimizer) Share(r Ranks) error {
	w := &o.window
	s := &w.share
	s.ranks = r
	o.model.shareTotals(&o.model.memory, r)
	s.in, s.out = o.words(2), o.words(2+len(o.model.metrics))
	s.rows = newWord[float32](&o.memory, s.in, manifest.F32)
	totals := o.out
	if w.acc.arena == nil {
		s.weigh.bind(o)
		totals = s.out
	}
	s.bindMetrics(o)
	s.state.bind(o)
	s.tally.bind(o)
	if o.err != nil {
		return o.err
	}
	narrow, wide := spans(w.grads)
	for _, r := range []ortgraphs.Range{narrow, wide} {
		if r.Len() > 0 {
			s.parts = append(s.parts, w.grads.part(w.grads.span(r)))
		}
	}
	s.parts = append(s.parts, totals.one(w.loss), totals.one(w.weight))
	for _, m := range s.metrics {
		s.parts = append(s.parts, s.out.one(m.sum))
	}
	s.parts = append(s.parts, s.tally.parts()...)
	if w.acc.arena == nil {
		s.joinGraph(o)
	}
	return o.send(s.in) // the constant; the mean of the state sends it again with the rows
}

// joinGraph has the training graph sum over the ranks, where it can, what the optimizer would after it.
func (s *share) joinGraph(o *Optimizer) {
	b := o.player.beside
	if b == nil {
		return
	}
	s.beside = b
	all := s.out.part(ortgraphs.Span{DType: manifest.F32, Elements: s.out.used / manifest.F32.Size()})
	b.totals = append([]Part{all}, s.tally.parts()...)
	b.weight = s.out.one(s.weigh.weight.sum)
	b.before = func() error { return s.tally.send(&o.memory) }
	b.total = func(on gpu.Stream) error {
		from, to := o.model.out, s.out
		move := func(word, source word[float32]) error { return on.Copy(to.dev, word.at, from.dev, source.at, 4) }
		err := move(s.weigh.loss.sum, o.model.loss)
		for _, m := range s.metrics {
			err = errors.Join(err, move(m.sum, o.model.metrics[m.metric]))
		}
		return errors.Join(err, b.kernel.weigh(on, all, b.batchWeight), move(s.weigh.weight.sum, o.model.weight))
	}
}

// add queues what the last micro-batch adds to the window beside accumulated gradients.
func (s *share) add(o *Optimizer, first bool) error {
	if s.ranks == nil {
		return nil
	}
	if s.beside.active() { // the graph has weighed the gradients, and counted the metrics
		return s.state.average(o)
	}
	return errors.Join(s.weigh.add(&o.memory), s.addMetrics(&o.memory, first), s.state.average(o))
}

// sum queues the sums over the ranks at the end of the window.
func (s *share) sum(m *memory) error {
	if s.ranks == nil {
		return nil
	}
	if !s.beside.active() {
		if err := errors.Join(s.tally.send(m), s.ranks.Sum(m.device.Compute, s.parts)); err != nil {
			return err
		}
	}
	return errors.Join(m.receive(s.out), s.tally.receive(m))
}

// rehearsals lists what a window may run.
func (s *share) rehearsals(o *Optimizer) (all []rehearsal) {
	for i := range s.metrics {
		for later := range s.metrics[i].add {
			all = append(all,
				rehearsal{&s.metrics[i].add[later], "metrics", []region{{s.out.dev, 0, s.out.used, manifest.F32}}})
		}
	}
	return slices.Concat(all, s.weigh.rehearsals(o), s.state.rehearsals(o))
}

// part returns a span of a block.
func (b *block) part(s ortgraphs.Span) Part {
	if b.dev != nil {
		return Part{
			DType: s.DType, Elements: s.Elements, Address: uint64(b.dev.Pointer()) + uint64(s.Offset), Block: b.dev,
		}
	}
	return Part{DType: s.DType, Elements: s.Elements, Host: b.host[s.Offset:][:s.Bytes()]}
}

// one returns a word of the block.
func (w *words) one(f word[float32]) Part {
	return w.part(ortgraphs.Span{DType: manifest.F32, Offset: f.at, Elements: 1})
}

// metricSum sums a metric over the batches of a window and, at its end, over the ranks: each value times the loss
// weight of its batch.
type metricSum struct {
	metric int // index in the bundle's list
	weightedSum
}

// weightedSum sums a value of batches, times their loss weights.
type weightedSum struct {
	sum word[float32]
	add [2]execution // of the window's first micro-batch, and of the others
}

// weightedSumGraph is the name of a graph that is made here, not exported.
const weightedSumGraph = "weighted sum"

// newSum makes the sum of a value.
func (s *share) newSum(o *Optimizer, value *ort.Tensor) weightedSum {
	sum := weightedSum{sum: newWord[float32](&o.memory, s.out, manifest.F32)}
	for later := range sum.add {
		sum.add[later] = o.execution(s.graphs.session(graph{name: weightedSumGraph}), tensors{
			"sum": sum.sum.tensor, "value": value, "weight": o.model.weight.tensor, "first": o.window.flags[1-later],
		}, tensors{"sum_out": sum.sum.tensor})
	}
	return sum
}

// bindMetrics makes the sums of the player's metrics.
func (s *share) bindMetrics(o *Optimizer) {
	for i, value := range o.model.metrics {
		if o.model.players[o.model.owners[i]] == o.player {
			s.metrics = append(s.metrics, metricSum{i, s.newSum(o, value.tensor)})
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
		if o.model.weighted && weight > 0 {
			weight = 1 // the graphs divide by the totals of all ranks
		}
		loss = float64(*w.loss.value) / weight
		for _, m := range w.share.metrics {
			metrics[m.metric] = float64(*m.sum.value) / weight
		}
	}
	return loss
}
