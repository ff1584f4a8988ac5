package train

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// ModelConfig says what a Model is made of. All fields are needed but Threads.
type ModelConfig struct {
	Bundle *ortgraphs.Bundle
	// Arena lays out the bundle's parameters.
	Arena *ortgraphs.Arena
	// Precision is that of the training graph, and of Arena: F32, also when it is empty, or BF16.
	Precision manifest.DType
	// Layouts holds one layout per bucket. The leading InputBytes of each are the graph's inputs; a device
	// slot has the same offsets as a ring slot.
	Layouts []ring.Layout
	// Slots is the number of device slots.
	Slots int
	// Threads compute inside an operator on the CPU; 0 means all cores.
	Threads int
	// Device is the CPU by default.
	Device Device
	// CUDAGraphs has Prepare capture the training graph of every slot and bucket, so that a step is one launch.
	CUDAGraphs bool
}

// Model is the bundle's training and evaluation graph with its weights, gradients and device slots.
//
// Load and Unload belong to the copier; everything else to the trainer's goroutine. Close is idempotent.
type Model struct {
	memory
	parameters
	results
	precision manifest.DType
	layouts   []ring.Layout

	slots []block

	capturing   bool // Prepare is to capture CUDA graphs
	programs    []Program
	inputs      []manifest.TensorSpec
	train, eval [][]execution // by slot and bucket
	in          *words
	seeds       []word[int64] // by slot: that of one is read while the next is queued
}

// Result is what one run of a graph says about a batch.
type Result struct {
	// Loss is the mean over what Weight counts.
	Loss, Weight float64
	// Metrics are in the order of the bundle's; one that the graph does not give is NaN. The next run
	// overwrites the slice.
	Metrics []float64
}

// results are the scalars that a graph writes.
type results struct {
	out          *words
	loss, weight word[float32]
	metrics      []word[float32]
	values       []float64 // of the metrics
	done         gpu.Event // what was queued before the last Fetch; nil on the CPU
}

// result reads them. The next call overwrites the metrics.
func (r *results) result() Result {
	for i, s := range r.metrics {
		r.values[i] = float64(*s.value)
	}
	return Result{Loss: float64(*r.loss.value), Weight: float64(*r.weight.value), Metrics: r.values}
}

// NewModel opens the graphs, loads the bundle's initial weights and makes one binding per slot and bucket. On error
// nothing is left open.
func NewModel(cfg ModelConfig) (*Model, error) {
	b := cfg.Bundle.Manifest
	m := &Model{memory: newMemory(cfg.Device), parameters: parameters{params: b.Parameters, arena: cfg.Arena}, inputs: b.Inputs, capturing: cfg.CUDAGraphs, precision: cmp.Or(cfg.Precision, manifest.F32), layouts: cfg.Layouts}
	m.build(cfg)
	if m.err == nil {
		m.err = m.load(&m.memory, cfg.Bundle)
	}
	if m.err != nil {
		m.Close()
		return nil, fmt.Errorf("model %s: %w", b.Name, m.err)
	}
	return m, nil
}

// SlotBytes returns the size of a device slot, which holds a batch of any bucket.
func SlotBytes(layouts []ring.Layout) int {
	size := 0
	for _, l := range layouts {
		size = max(size, l.InputBytes)
	}
	return size
}

// Load copies the graph's inputs of a batch from a ring slot into a device slot, in one piece, and returns when it is there. On a
// GPU the ring slot is pinned, and the caller's thread bound to the context; the copy runs beside the graphs.
func (m *Model) Load(slot, bucket int, src []byte) error {
	src = src[:m.layouts[bucket].InputBytes]
	dst := &m.slots[slot]
	if !m.device.onGPU() {
		copy(dst.host, src)
		return nil
	}
	timer := m.device.Timer
	if err := errors.Join(timer.begin(Transferring), m.device.Transfer.Upload(dst.dev, 0, src), timer.end(Transferring)); err != nil {
		return err
	}
	if err := m.device.arrive(); err != nil {
		return err
	}
	return timer.transferred()
}

// Unload copies the graph's inputs back from a device slot to memory of the same kind that Load takes them from: the way back, for
// who wants to see what arrived.
func (m *Model) Unload(slot, bucket int, dst []byte) error {
	dst = dst[:m.layouts[bucket].InputBytes]
	src := &m.slots[slot]
	if !m.device.onGPU() {
		copy(dst, src.host)
		return nil
	}
	return errors.Join(m.device.Transfer.Download(dst, src.dev, 0), m.device.Transfer.Synchronize())
}

// Async reports whether Queue returns before the batch is computed.
func (m *Model) Async() bool { return m.device.onGPU() }

// Queue runs forward and backward on the batch in a device slot, which may go on when it has returned. The gradients stand in the
// gradient arena until the next call. Fetch and Result follow; the next batch, in another slot, may be queued between the two.
func (m *Model) Queue(slot, bucket int, seed int64) error {
	*m.seeds[slot].value = seed
	return m.queue(Training, m.train[slot][bucket])
}

func (m *Model) queue(w Work, e execution) error {
	return errors.Join(m.send(m.in), m.blank(m.out), m.device.Timer.around(w, func() error { return m.run(e) }))
}

// Fetch queues what brings the outcome of all work queued so far to the host.
func (m *Model) Fetch() error {
	if !m.Async() {
		return nil
	}
	m.device.Timer.queued()
	return errors.Join(m.receive(m.out), m.device.Compute.Record(m.done))
}

// Result waits for what the last Fetch brings, and with it for all that was queued before.
func (m *Model) Result() (Result, error) {
	if m.Async() {
		if err := errors.Join(m.done.Synchronize(), m.device.Timer.computed()); err != nil {
			return Result{}, err
		}
	}
	return m.result(), nil
}

// Train is Queue, Fetch and Result.
func (m *Model) Train(slot, bucket int, seed int64) (Result, error) {
	*m.seeds[slot].value = seed
	return m.compute(Training, m.train[slot][bucket])
}

// Evaluate runs the evaluation graph, without dropout, and waits for the result.
func (m *Model) Evaluate(slot, bucket int) (Result, error) {
	return m.compute(Evaluating, m.eval[slot][bucket])
}

func (m *Model) compute(w Work, e execution) (Result, error) {
	if err := errors.Join(m.queue(w, e), m.Fetch()); err != nil {
		return Result{}, err
	}
	return m.Result()
}

// Drain waits until nothing is queued, such as a batch whose result no one needs any more.
func (m *Model) Drain() error {
	if !m.Async() {
		return nil
	}
	return m.device.Compute.Synchronize()
}

// Pull brings what Weights shows up to date. On the CPU that is always so.
func (m *Model) Pull() error { return m.pull(&m.weights.block) }

// Push takes over what was written to Weights, and copies of it.
func (m *Model) Push() error { return m.upload(&m.memory) }

// Gradients returns the gradients of the last Train by parameter, without the frozen ones.
func (m *Model) Gradients() ([]checkpoint.Tensor, error) {
	if err := m.pull(&m.grads.block); err != nil {
		return nil, err
	}
	return m.views("", m.grads), nil
}

// Bytes returns the memory of the weights with their copies, of the gradients, and of the device slots.
func (m *Model) Bytes() (weights, grads, slots int) {
	for _, s := range m.slots {
		slots += s.size
	}
	return m.weights.size + m.copies.size, m.grads.size, slots
}
