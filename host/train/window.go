package train

import (
	"cmp"
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/peers"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// window accumulates and measures the gradients of one or several micro-batches.
type window struct {
	acc   vector // accumulated gradients; none without accumulation
	grads vector // the gradients that are measured and applied: acc, or those of the batch

	accumulate [2][]accumulation // of the window's first micro-batch, and of the others
	squares    []execution       // of bf16 gradients, in chunks: in f32 they would take twice their memory
	sum        func() error      // queues the sum of all these squares in a kernel instead; nil for none
	norm       execution
	total      *execution     // the norm of a window: norm, or that of the sum over the ranks
	normed     tensors        // the inputs of norm
	flags      [2]*ort.Tensor // false and true

	loss, weight word[float32] // the sums of a window; none without accumulation and ranks
	share        share
	kept         stateUpdate
}

// accumulation adds the gradients of a range.
type accumulation struct {
	execution
	ortgraphs.Range
}

// spans returns the trained parameters with bf16 gradients, and the others.
func spans(v vector) (narrow, wide ortgraphs.Range) {
	trained := v.arena.Trained()
	narrow.Start, narrow.End = trained.Start, trained.Start
	for _, s := range v.arena.Segments() { // bf16 comes first
		if s.Trained && v.span(s.Range).DType == manifest.BF16 {
			narrow.End = s.End
		}
	}
	return narrow, ortgraphs.Range{Start: narrow.End, End: trained.End}
}

// bindWindow binds the graphs that accumulate and measure gradients.
func (o *Optimizer) bindWindow(g *graphs, accumulating bool) {
	no, yes := o.flag(&o.memory, 0), o.flag(&o.memory, 1)
	w := &o.window
	w.grads, w.flags = o.player.grads, [2]*ort.Tensor{no, yes}
	sums := tensors{"loss": o.model.loss.tensor, "loss_weight": o.model.weight.tensor, "summed": no}
	if accumulating {
		o.bindAccumulation(g, yes, no)
		sums = o.sums()
	}
	narrow, wide := spans(w.grads)
	sums["others"] = o.bindSquares(g, narrow, yes, no)
	if wide.Len() > 0 {
		sums["grads"] = o.flat(w.grads, wide)
	} else {
		sums["grads"] = o.tensor(o.block(apart), 0, manifest.F32, 1) // a zero: a graph needs at least one element
	}
	w.normed, w.norm, w.total = sums, o.bindNorm(g, sums), &w.norm
}

// bindNorm binds the graph that measures gradients.
func (o *Optimizer) bindNorm(g *graphs, inputs tensors) execution {
	return o.execution(g.session(graph{name: "norm"}), inputs, tensors{
		"grad_norm": o.gradNorm.tensor, "grad_scale": o.scale.tensor, "finite": o.finite.tensor,
	})
}

// sums returns what the norm needs to know of the sums of a window.
func (o *Optimizer) sums() tensors {
	w := &o.window
	summed := w.flags[1]
	if o.model.weighted {
		summed = w.flags[0] // the graph divides by the totals of the window
	}
	return tensors{"loss": w.loss.tensor, "loss_weight": w.weight.tensor, "summed": summed}
}

// bindAccumulation binds the graph that adds gradients, losses and weights.
func (o *Optimizer) bindAccumulation(g *graphs, yes, no *ort.Tensor) {
	w := &o.window
	w.acc = o.vector(o.player.arena, ortgraphs.State)
	w.loss, w.weight = newWord[float32](&o.memory, o.out, manifest.F32),
		newWord[float32](&o.memory, o.out, manifest.F32)
	loss, weight := w.loss.tensor, w.weight.tensor
	// the sums of all parts but the first, which are the same
	ignored := [2]*ort.Tensor{o.output(&o.memory), o.output(&o.memory)}
	narrow, wide := spans(o.player.grads)
	parts := o.device.chunks(narrow)
	if wide.Len() > 0 {
		parts = append([]ortgraphs.Range{wide}, parts...)
	}
	for i, first := range []*ort.Tensor{yes, no} {
		for n, part := range parts {
			sums := [2]*ort.Tensor{loss, weight}
			if n > 0 {
				sums = ignored
			}
			acc := o.flat(w.acc, part)
			session := g.session(graph{"accumulate", forms{gradients: part.Start < narrow.End}})
			e := o.execution(session, tensors{
				"acc": acc, "grads": o.flat(o.player.grads, part), "loss": o.model.loss.tensor,
				"loss_weight": o.model.weight.tensor, "first": first, "loss_sum": sums[0], "weight_sum": sums[1],
			}, tensors{"acc_out": acc, "loss_sum_out": sums[0], "weight_sum_out": sums[1]})
			w.accumulate[i] = append(w.accumulate[i], accumulation{e, part})
		}
	}
	w.grads = w.acc
}

// bindSquares returns the sum of the squares of bf16 gradients; 0 without any.
func (o *Optimizer) bindSquares(g *graphs, narrow ortgraphs.Range, yes, no *ort.Tensor) *ort.Tensor {
	if narrow.Len() == 0 {
		return newWord[float32](&o.memory, o.in, manifest.F32).tensor
	}
	word := newWord[float32](&o.memory, o.out, manifest.F32)
	if o.device.onGPU() && o.err == nil {
		to := uint64(o.out.dev.Pointer()) + uint64(word.at)
		fault := o.window.sumInKernel(&o.memory, o.player.beside, narrow, to)
		if fault == nil {
			return word.tensor
		}
		// without a kernel for the GPU, ONNX Runtime adds them up, which only takes longer
		if !errors.Is(fault, gpu.ErrNoKernel) {
			o.fault = fault
		}
	}
	sum, first := word.tensor, yes
	for _, part := range o.device.chunks(narrow) {
		o.window.squares = append(o.window.squares, o.execution(g.session(graph{"squares", forms{gradients: true}}),
			tensors{"grads": o.flat(o.window.grads, part), "first": first, "sum": sum}, tensors{"sum_out": sum}))
		first = no
	}
	return sum
}

// sumInKernel prepares the kernel that writes the sum of the squares of a range to an address, or says why there is
// none. After a sum over the ranks by copies, only those of the threads of that sum are added up.
func (w *window) sumInKernel(m *memory, b *beside, narrow ortgraphs.Range, to uint64) (fault error) {
	k, fault, err := newSquaresKernel(m)
	if m.err = err; err != nil || fault != nil {
		return cmp.Or(fault, err)
	}
	grads, squares := w.grads.address(narrow), b.keepSquares()
	w.sum = func() error {
		if b.copies() {
			return k.add(squares, peers.SumThreads, to)
		}
		return k.sum(grads, narrow.Len(), to)
	}
	return nil
}

// Accumulate queues the addition of the last batch's gradients, times the batch's weight, to the window's, and has the
// next batch begin with the state that the last one left. The first batch of a window overwrites the previous window's
// gradients. Without accumulation Step takes the gradients as they are, or with ranks times the batch's weight.
func (o *Optimizer) Accumulate(first bool) error {
	return errors.Join(o.window.add(&o.memory, first, func() error { return o.window.share.add(o, first) }),
		o.player.state.advance(&o.memory))
}

// add queues the addition of the last batch's gradients, and what goes with it.
func (w *window) add(m *memory, first bool, more func() error) error {
	all := w.accumulate[1]
	if first {
		all = w.accumulate[0]
	}
	if len(all) == 0 && w.share.ranks == nil {
		return nil
	}
	return m.device.Timer.around(Accumulating, func() error {
		for _, a := range all {
			if err := m.run(a.execution); err != nil {
				return err
			}
		}
		return more()
	})
}

// measure queues the norm of gradients: of the window, or of the last batch alone.
func (w *window) measure(m *memory, norm *execution) error {
	if w.sum != nil {
		if err := w.sum(); err != nil {
			return err
		}
	}
	for _, e := range w.squares {
		if err := m.run(e); err != nil {
			return err
		}
	}
	return m.run(*norm)
}

// Norm returns the result that Step would have for a window of the last batch alone: the gradient norm before clipping,
// and whether loss and gradients are finite and the batch has a weight. It waits for the result and changes nothing.
func (o *Optimizer) Norm() (gradNorm float64, finite bool, err error) {
	alone := func() error { return nil }
	if err := errors.Join(
		o.window.add(&o.memory, true, alone), o.send(o.in),
		o.window.measure(&o.memory, &o.window.norm), o.receive(o.out), o.model.Fetch(),
	); err != nil {
		return 0, false, err
	}
	_, err = o.model.Result()
	return float64(*o.gradNorm.value), *o.finite.value != 0, err
}
