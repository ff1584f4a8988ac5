package train

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// weighing makes the gradients, the loss and the weight of a batch those of a window that ranks share, where no one
// accumulates: what the first batch of an accumulation adds to zero, but in place, so that gradients in bf16 stay so.
type weighing struct {
	gradients    []accumulation // in chunks
	kernel       func() error   // does the same to all of them on a GPU; nil for none
	loss, weight weightedSum    // of the only batch: their terms for later ones are not used
	norm         execution      // of the sum over the ranks
}

// weighGraph is the name of a graph that is made here, not exported.
const weighGraph = "weigh"

// bind makes what weighs, and the norm that divides by the weights of all ranks.
func (g *weighing) bind(o *Optimizer) {
	w := &o.window
	s := &w.share
	one := newWord[float32](&o.memory, s.in, manifest.F32)
	*one.value = 1
	g.loss, g.weight = s.newSum(o, o.model.loss.tensor), s.newSum(o, one.tensor)
	w.loss, w.weight = g.loss.sum, g.weight.sum
	g.bindGradients(o)
	inputs := maps.Clone(w.normed)
	maps.Copy(inputs, o.sums())
	g.norm = o.bindNorm(s.graphs, inputs)
	w.total = &g.norm
}

// bindGradients prepares the kernel, or binds the graph.
func (g *weighing) bindGradients(o *Optimizer) {
	narrow, wide := spans(o.window.grads)
	parts := []ortgraphs.Range{narrow, wide}
	if o.device.onGPU() && o.err == nil {
		fault := g.useKernel(o, parts)
		if fault == nil {
			return
		}
		// without a kernel for the GPU, ONNX Runtime multiplies, which only takes longer
		if !errors.Is(fault, gpu.ErrNoKernel) {
			o.fault = cmp.Or(o.fault, fault)
		}
	}
	for _, r := range parts {
		for _, part := range o.device.chunks(r) {
			grads := o.flat(o.window.grads, part)
			session := o.window.share.graphs.session(graph{weighGraph, forms{gradients: part.Start < narrow.End}})
			e := o.execution(session, tensors{"grads": grads, "weight": o.model.weight.tensor},
				tensors{"weighted": grads})
			g.gradients = append(g.gradients, accumulation{e, part})
		}
	}
}

// useKernel prepares the kernel for ranges of the gradients, or says why there is none.
func (g *weighing) useKernel(o *Optimizer, parts []ortgraphs.Range) (fault error) {
	k, fault, err := newWeighKernel(&o.memory)
	if o.err = err; err != nil || fault != nil {
		return cmp.Or(fault, err)
	}
	grads, weight := o.window.grads, uint64(o.model.out.dev.Pointer())+uint64(o.model.weight.at)
	g.kernel = func() error {
		for _, part := range parts {
			if part.Len() == 0 {
				continue
			}
			if err := k.weigh(o.device.Compute, grads.part(grads.span(part)), weight); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// add queues it for the last batch, unless gradients are accumulated.
func (g *weighing) add(m *memory) error {
	if g.norm.binding == nil {
		return nil
	}
	if g.kernel != nil {
		if err := g.kernel(); err != nil {
			return err
		}
	}
	for _, part := range g.gradients {
		if err := m.run(part.execution); err != nil {
			return err
		}
	}
	return errors.Join(m.run(g.loss.add[0]), m.run(g.weight.add[0]))
}

// rehearsals lists what a window may run.
func (g *weighing) rehearsals(o *Optimizer) []rehearsal {
	if g.norm.binding == nil {
		return nil
	}
	out := o.window.share.out
	sums := []region{{out.dev, 0, out.used, manifest.F32}}
	all := []rehearsal{
		{&g.norm, "norm over the ranks", []region{{o.out.dev, 0, o.out.used, manifest.F32}}},
		{&g.loss.add[0], "loss", sums}, {&g.weight.add[0], "weight", sums},
	}
	for i := range g.gradients {
		part := &g.gradients[i]
		all = append(all, rehearsal{&part.execution, fmt.Sprintf("weighing of element %d on", part.Start),
			[]region{o.window.grads.region(part.Range)}})
	}
	return all
}
