package train

import (
	"maps"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// seedInput is the name of the input that drives dropout.
const seedInput = "seed"

// tensors are what graphs read or write, by name.
type tensors map[string]*ort.Tensor

func (m *Model) build(cfg ModelConfig) {
	masters, copied, grads := m.makeParameters()
	outputs := m.makeOutputs(cfg)
	asked := maps.Clone(grads) // by training; evaluation asks for outputs alone
	maps.Copy(asked, outputs)

	trainGraph, _ := cfg.Bundle.Manifest.Graph("train", string(m.precision))
	evalGraph, ok := cfg.Bundle.Manifest.Graph("eval", string(manifest.F32))
	evaluated := masters
	if !ok {
		evalGraph, evaluated = trainGraph, copied
	}
	train, eval := m.program(cfg, trainGraph, asked, cfg.CUDAGraphs), m.program(cfg, evalGraph, outputs, false)
	if cfg.CUDAGraphs && m.async != nil && m.err == nil {
		m.err = m.async.NoGraph() // until Prepare
	}
	m.makeSlots(cfg.Slots, func(slot int, batch tensors, noDropout *ort.Tensor) {
		maps.Copy(batch, copied)
		batch[seedInput] = m.seeds[slot].tensor
		m.train[slot] = append(m.train[slot], m.execution(train, batch, asked))
		maps.Copy(batch, evaluated)
		batch[seedInput] = noDropout
		m.eval[slot] = append(m.eval[slot], m.execution(eval, batch, outputs))
	})
}

// makeParameters returns the parameters in f32, as the training graph reads them, and their gradients.
func (m *Model) makeParameters() (masters, copied, grads tensors) {
	m.weights, m.grads = m.vector(m.arena, ortgraphs.Weights), m.vector(m.arena, ortgraphs.Gradients)
	if m.arena.Bytes(ortgraphs.Copies) > 0 {
		m.copies = m.vector(m.arena, ortgraphs.Copies)
	}
	masters, copied, grads = tensors{}, tensors{}, tensors{}
	for i, p := range m.params {
		at, _ := m.arena.Parameter(ortgraphs.Weights, i)
		masters[p.Name] = m.view(m.weights.block, at, p.Shape...)
		copied[p.Name] = masters[p.Name]
		if at, ok := m.arena.Parameter(ortgraphs.Copies, i); ok {
			copied[p.Name] = m.view(m.copies.block, at, p.Shape...)
		}
		if at, ok := m.arena.Parameter(ortgraphs.Gradients, i); ok {
			grads["grad."+p.Name] = m.view(m.grads.block, at, p.Shape...)
		}
	}
	return masters, copied, grads
}

// makeOutputs makes the scalars that a graph writes, beside those that it reads.
func (m *Model) makeOutputs(cfg ModelConfig) tensors {
	metrics := cfg.Bundle.Manifest.Metrics()
	m.in, m.out = m.words(cfg.Slots+1), m.words(2+len(metrics))
	m.loss, m.weight = newWord[float32](&m.memory, m.out, manifest.F32), newWord[float32](&m.memory, m.out, manifest.F32)
	outputs := tensors{"loss": m.loss.tensor, "loss_weight": m.weight.tensor}
	for _, name := range metrics {
		w := newWord[float32](&m.memory, m.out, manifest.F32)
		outputs["metric."+name] = w.tensor
		m.metrics = append(m.metrics, w)
	}
	m.values = make([]float64, len(m.metrics))
	return outputs
}

// makeSlots makes the device slots, and has bind make the executions of each slot and bucket.
func (m *Model) makeSlots(slots int, bind func(slot int, batch tensors, noDropout *ort.Tensor)) {
	noDropout := newWord[int64](&m.memory, m.in, manifest.I64)
	*noDropout.value = -1
	size := SlotBytes(m.layouts)
	m.done = m.event()
	m.train, m.eval = make([][]execution, slots), make([][]execution, slots)
	for slot := range slots {
		mem := m.block(size)
		m.slots = append(m.slots, mem)
		m.seeds = append(m.seeds, newWord[int64](&m.memory, m.in, manifest.I64))
		for _, layout := range m.layouts {
			batch := tensors{}
			for _, t := range layout.Tensors {
				if t.Offset < layout.InputBytes {
					batch[t.Name] = m.tensor(mem, t.Offset, t.DType, t.Shape...)
				}
			}
			bind(slot, batch, noDropout.tensor)
		}
	}
}

// program opens one of the bundle's graphs, pruned to the outputs that are bound.
func (m *Model) program(cfg ModelConfig, g manifest.Graph, outputs tensors, graphs bool) *ort.Session {
	if m.err != nil {
		return nil
	}
	p, err := cfg.Bundle.Program(g, func(output string) bool { return outputs[output] != nil })
	if err != nil {
		m.err = err
		return nil
	}
	m.programs = append(m.programs, Program{File: g.File, Precision: g.Precision, Nodes: p.Nodes, SHA256: p.Hash()})
	return m.open(ort.SessionConfig{Model: p.Model, Dir: p.Dir, Name: g.File, Threads: cfg.Threads}, graphs)
}

// Program says which graph runs: a file of the bundle, pruned to what the run asks for.
type Program struct {
	File, Precision string
	// Nodes and SHA256 are those of what is left.
	Nodes  int
	SHA256 string
}

// Programs returns the training and the evaluation graph.
func (m *Model) Programs() (training, evaluation Program) { return m.programs[0], m.programs[1] }
