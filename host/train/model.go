package train

import (
	"fmt"
	"maps"
	"math"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// ModelConfig says what a Model is made of. All fields are needed but Threads.
type ModelConfig struct {
	Bundle *ortgraphs.Bundle
	// Layouts holds one layout per bucket. The leading InputBytes of each are the graph's inputs; a device
	// slot has the same offsets as a ring slot.
	Layouts []ring.Layout
	// Slots is the number of device slots.
	Slots int
	// Threads compute inside an operator; 0 means all cores.
	Threads int
}

// Model is the bundle's training and evaluation graph with its weights, gradients and device slots.
//
// Load belongs to the copier; everything else to the trainer's goroutine. Close is idempotent.
type Model struct {
	memory
	params  []manifest.Parameter
	arena   ortgraphs.Arena
	layouts []ring.Layout

	weights, grads []byte   // arenas of arena.Len f32
	slots          [][]byte // device slots

	train, eval  [][]*ort.Binding // by slot and bucket
	seed         scalar[int64]
	loss, weight scalar[float32]
	metrics      []scalar[float32]
	values       []float64 // of the metrics
}

// Result is what one run of a graph says about a batch.
type Result struct {
	// Loss is the mean over what Weight counts.
	Loss, Weight float64
	// Metrics are in the order of the bundle's; one that the graph does not give is NaN. The next run
	// overwrites the slice.
	Metrics []float64
}

// NewModel opens the graphs, loads the bundle's initial weights and makes one binding per slot and bucket. On error
// nothing is left open.
func NewModel(cfg ModelConfig) (*Model, error) {
	b := cfg.Bundle.Manifest
	m := &Model{params: b.Parameters, arena: ortgraphs.LayoutArena(b.Parameters), layouts: cfg.Layouts}
	m.open(cfg)
	if m.err == nil {
		m.err = m.loadWeights(cfg.Bundle)
	}
	if m.err != nil {
		m.Close()
		return nil, fmt.Errorf("model %s: %w", b.Name, m.err)
	}
	return m, nil
}

// precision of the graphs that run on a CPU, and the name of the input that drives dropout.
const (
	precision = "f32"
	seedInput = "seed"
)

func (m *Model) open(cfg ModelConfig) {
	b := cfg.Bundle.Manifest
	trainGraph, _ := b.Graph("train", precision)
	train := m.session(ort.SessionConfig{Path: cfg.Bundle.Path(trainGraph.File), Threads: cfg.Threads})
	eval := train
	if g, ok := b.Graph("eval", precision); ok {
		eval = m.session(ort.SessionConfig{Path: cfg.Bundle.Path(g.File), Threads: cfg.Threads})
	}

	inputs, outputs, grads := map[string]*ort.Tensor{}, map[string]*ort.Tensor{}, map[string]*ort.Tensor{}
	m.weights, m.grads = m.buffer(4*m.arena.Len), m.buffer(4*m.arena.Len)
	for i, p := range m.params {
		inputs[p.Name] = m.floats(m.weights, m.arena.Offsets[i], p.Shape...)
		if !p.Frozen {
			grads["grad."+p.Name] = m.floats(m.grads, m.arena.Offsets[i], p.Shape...)
		}
	}
	m.loss, m.weight = newScalar[float32](&m.memory, manifest.F32), newScalar[float32](&m.memory, manifest.F32)
	outputs["loss"], outputs["loss_weight"] = m.loss.tensor, m.weight.tensor
	for _, name := range b.Metrics() {
		s := newScalar[float32](&m.memory, manifest.F32)
		outputs["metric."+name] = s.tensor
		m.metrics = append(m.metrics, s)
	}
	m.values = make([]float64, len(m.metrics))
	maps.Copy(grads, outputs) // what training asks for; evaluation asks for outputs alone

	m.seed = newScalar[int64](&m.memory, manifest.I64)
	noDropout := newScalar[int64](&m.memory, manifest.I64)
	*noDropout.value = -1

	size := 0
	for _, l := range m.layouts {
		size = max(size, l.InputBytes)
	}
	m.train, m.eval = make([][]*ort.Binding, cfg.Slots), make([][]*ort.Binding, cfg.Slots)
	for slot := range cfg.Slots {
		mem := m.buffer(size)
		m.slots = append(m.slots, mem)
		for _, layout := range m.layouts {
			for _, t := range layout.Tensors {
				if t.Offset < layout.InputBytes && m.err == nil {
					inputs[t.Name] = m.tensor(mem[t.Offset:], t.DType, t.Shape...)
				}
			}
			inputs[seedInput] = m.seed.tensor
			m.train[slot] = append(m.train[slot], m.bind(train, inputs, grads))
			inputs[seedInput] = noDropout.tensor
			m.eval[slot] = append(m.eval[slot], m.bind(eval, inputs, outputs))
		}
	}
}

// Load copies the graph's inputs of a batch from a ring slot into a device slot.
func (m *Model) Load(slot, bucket int, src []byte) {
	n := m.layouts[bucket].InputBytes
	copy(m.slots[slot][:n], src[:n])
}

// Train runs forward and backward on the batch in a device slot. The gradients stand in the gradient arena until
// the next call.
func (m *Model) Train(slot, bucket int, seed int64) (Result, error) {
	*m.seed.value = seed
	return m.run(m.train[slot][bucket])
}

// Evaluate runs the evaluation graph, without dropout.
func (m *Model) Evaluate(slot, bucket int) (Result, error) {
	return m.run(m.eval[slot][bucket])
}

func (m *Model) run(b *ort.Binding) (Result, error) {
	for _, s := range m.metrics {
		*s.value = float32(math.NaN())
	}
	if err := b.Run(nil); err != nil {
		return Result{}, err
	}
	for i, s := range m.metrics {
		m.values[i] = float64(*s.value)
	}
	return Result{Loss: float64(*m.loss.value), Weight: float64(*m.weight.value), Metrics: m.values}, nil
}

// Weights returns the parameters as tensors of the arena, in its order. They change with every step.
func (m *Model) Weights() []checkpoint.Tensor { return m.views("", m.weights) }

// Gradients returns the gradients of the last Train by parameter, without the frozen ones.
func (m *Model) Gradients() []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for i, t := range m.views("", m.grads) {
		if !m.params[i].Frozen {
			out = append(out, t)
		}
	}
	return out
}

func (m *Model) views(kind string, arena []byte) []checkpoint.Tensor {
	out := make([]checkpoint.Tensor, len(m.params))
	for i, p := range m.params {
		name := p.Name
		if kind != "" {
			name = checkpoint.Moment(kind, p.Name)
		}
		from := 4 * m.arena.Offsets[i]
		out[i] = checkpoint.Tensor{Name: name, Shape: p.Shape, Data: arena[from : from+4*p.Elements()]}
	}
	return out
}

func (m *Model) loadWeights(b *ortgraphs.Bundle) error {
	f, err := b.Weights()
	if err != nil {
		return err
	}
	defer f.Close()
	for _, t := range m.Weights() {
		if err := f.Read(t.Name, t.Data); err != nil {
			return fmt.Errorf("%s: %w", b.Path(ortgraphs.WeightsFile), err)
		}
	}
	return nil
}

// Bytes returns the memory of the weights, the gradients and the device slots.
func (m *Model) Bytes() (weights, grads, slots int) {
	for _, s := range m.slots {
		slots += len(s)
	}
	return len(m.weights), len(m.grads), slots
}
