package train

import (
	"maps"
	"math"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// tensorState is the state of an optimizer that updates each parameter by itself: tensors of any shape, in one block,
// which is empty if there are none.
type tensorState struct {
	block
	tensors []stateTensor
}

// stateTensor is one of the tensors.
type stateTensor struct {
	name string // in checkpoints
	ortgraphs.StateTensor
	span ortgraphs.Span
}

// views returns the tensors as checkpoints have them.
func (s *tensorState) views() (out []checkpoint.Tensor) {
	for _, t := range s.tensors {
		data := s.host[t.span.Offset : t.span.Offset+t.span.Bytes()]
		out = append(out, checkpoint.Tensor{Name: t.name, DType: manifest.F32, Shape: t.Shape, Data: data})
	}
	return out
}

// bindTensors binds a graph to each trained parameter and its state.
func bindTensors(o *Optimizer, g *graphs) {
	o.tensors.block = o.block(o.player.arena.OptimizerStateBytes(o.params))
	at := 0
	for i, p := range o.player.params {
		if !o.player.arena.Role(i).Trained {
			continue
		}
		u := ortgraphs.UpdateOf(o.params, p)
		state := make([]stateTensor, len(u.State))
		for n, s := range u.State {
			span := ortgraphs.Span{DType: manifest.F32, Offset: at, Elements: s.Elements()}
			state[n] = stateTensor{checkpoint.Moment(s.Name, p.Name), s, span}
			at += s.Bytes()
		}
		o.tensors.tensors = append(o.tensors.tensors, state...)
		o.updates = append(o.updates, bindTensor(o, g, i, u, state))
	}
}

// bindTensor binds the update of parameter i. The outputs replace the inputs: the last operator of an output depends on
// all readers of the input.
func bindTensor(o *Optimizer, g *graphs, i int, u ortgraphs.Update, state []stateTensor) update {
	v, role := o.vectors(), o.player.arena.Role(i)
	weights, _ := v.weights.arena.Parameter(v.weights.kind, i)
	grads, _ := v.grads.arena.Parameter(v.grads.kind, i)
	f := forms{gradients: grads.DType == manifest.BF16, copies: role.Compute == manifest.BF16}
	rates := o.rates(&o.memory, groupOf(o.params, role))
	inputs := tensors(maps.Clone(o.inputs))
	inputs["lr"], inputs["weight_decay"], inputs["adjust"] = rates.lr, rates.weightDecay,
		o.constant(&o.memory, muonAdjust(u.Shape))
	inputs["param"], inputs["grad"] = o.view(v.weights.block, weights, u.Shape...),
		o.view(v.grads.block, grads, u.Shape...)
	outputs := tensors{"param_out": inputs["param"]}
	written := []region{{v.weights.dev, weights.Offset, weights.Bytes(), weights.DType}}
	for _, s := range state {
		inputs[s.Name] = o.view(o.tensors.block, s.span, s.View...)
		outputs[s.Name+"_out"] = inputs[s.Name]
		written = append(written, region{o.tensors.dev, s.span.Offset, s.span.Bytes(), manifest.F32})
	}
	if f.copies {
		at, _ := v.copies.arena.Parameter(v.copies.kind, i)
		outputs["copy_out"] = o.view(v.copies.block, at, u.Shape...)
		written = append(written, region{v.copies.dev, at.Offset, at.Bytes(), at.DType})
	}
	return update{o.execution(g.session(graph{u.Graph, f}), inputs, outputs), o.player.params[i].Name, written}
}

// muonAdjust is the factor of Muon's learning rate that makes an update as large as one of AdamW (Liu et al. 2025, Muon
// is Scalable for LLM Training), so that one learning rate serves both.
func muonAdjust(shape []int) float64 {
	longest := 0
	for _, d := range shape {
		longest = max(longest, d)
	}
	return 0.2 * math.Sqrt(float64(longest))
}
