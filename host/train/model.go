package train

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// ModelConfig configures a Model. All fields except Threads are required.
type ModelConfig struct {
	Bundle *ortgraphs.Bundle
	// Arenas lay out the parameters of the bundle's players.
	Arenas []*ortgraphs.Arena
	// Precision is the precision of the training graphs and of Arenas: F32, the default, or BF16.
	Precision manifest.DType
	// Layouts has one layout per bucket. The leading InputBytes of each are the graph's inputs; a device slot has the
	// same offsets as a ring slot.
	Layouts []ring.Layout
	// Slots is the number of device slots.
	Slots int
	// Threads is the number of threads inside an operator on the CPU; 0 means all cores.
	Threads int
	// Average is the decay of a moving average of the trained weights, which is evaluated instead of them; 0 means
	// none.
	Average float64
	// Device is the CPU by default.
	Device Device
	// CUDAGraphs makes Prepare capture the training graph of every player, slot and bucket, so that a step is one
	// launch.
	CUDAGraphs bool
	// Capturable returns the reason why a training graph cannot be captured: fused, or for nil the file as exported.
	// Without it, all can.
	Capturable func(file string, fused []byte) error
	Fuse       FuseConfig
	// Ranks, unless nil, sum the gradients of a window while fused training graphs compute others, if their GPUs reach
	// each other's memory or SumsBeside is set. The optimizers share them too, and windows have one micro-batch.
	Ranks      Ranks
	SumsBeside bool
}

// FuseConfig says how the training graphs are fused, and the evaluation graph where that saves memory.
type FuseConfig struct {
	// Compiler compiles the kernels of the graphs' regions, which Prepare proves on a GPU; nil means that the graphs
	// run as exported. So does one that cannot be fused.
	Compiler fused.Compiler
	Form     fused.Form
	// Proofs remembers which kernels are proved; nil means that they are proved at each start.
	Proofs Proofs
	// Costs returns what predicts a step of a player's graph, or false if nothing is known of the GPU. It may be nil.
	Costs func(player string) (cost.Settings, bool)
}

// Proofs remembers the proofs of kernels on a kind of GPU, by the hash of a graph with its sizes and programs.
type Proofs interface {
	// Proved returns what Remember was told of a graph, or nil.
	Proved(graph [sha256.Size]byte) []byte
	Remember(graph [sha256.Size]byte, proved []byte)
}

// Model is the bundle's training and evaluation graphs with their weights, gradients and device slots.
//
// Load and Unload are for the copier, everything else for the trainer's goroutine. Close is idempotent.
type Model struct {
	Evaluated Evaluated

	memory
	results
	captureChoice
	batchScalars
	precision manifest.DType
	layouts   []ring.Layout

	slots []block

	players
	evaluator       *player
	evaluatesCopies bool // the evaluation graph reads copies of weights, as training does
	inputs          []manifest.TensorSpec
	in              *words
	ranks           Ranks // as in ModelConfig
	sumsBeside      bool
}

// Result is the result of a run for one batch.
type Result struct {
	// Loss is the mean over the items that Weight counts.
	Loss, Weight float64
	// Metrics are in the bundle's order; a metric that the graph does not return is NaN. The next run overwrites the
	// slice.
	Metrics []float64
}

// results are the scalars that a graph writes.
type results struct {
	out          *words
	loss, weight word[float32]
	metrics      []word[float32]
	names        []string  // of the metrics
	owners       []int     // the players that the metrics belong to
	values       []float64 // of the metrics
	done         gpu.Event // after the work queued before the last Fetch; nil on the CPU
}

// result reads the values. The next call overwrites the metrics.
func (r *results) result() Result {
	for i, s := range r.metrics {
		r.values[i] = float64(*s.value)
	}
	return Result{Loss: float64(*r.loss.value), Weight: float64(*r.weight.value), Metrics: r.values}
}

// NewModel opens the graphs, loads the bundle's initial weights and makes one binding per slot and bucket. On error it
// releases everything.
func NewModel(cfg ModelConfig) (*Model, error) {
	b := cfg.Bundle.Manifest
	m := &Model{
		memory: newMemory(cfg.Device), players: newPlayers(cfg), inputs: b.Inputs,
		batchScalars:  batchScalars{specs: b.Scalars, weighted: b.Accumulation == manifest.Weighted},
		captureChoice: captureChoice{capturing: cfg.CUDAGraphs, capturable: cfg.Capturable},
		precision:     cmp.Or(cfg.Precision, manifest.F32), layouts: cfg.Layouts, ranks: cfg.Ranks,
		sumsBeside: cfg.SumsBeside,
	}
	m.build(cfg)
	if m.err == nil {
		m.err = m.players.load(&m.memory, cfg.Bundle)
	}
	if m.err != nil {
		m.Close()
		return nil, fmt.Errorf("model %s: %w", b.Name, m.err)
	}
	return m, nil
}

// SlotBytes returns the size of a device slot, which has room for a batch of any bucket.
func SlotBytes(layouts []ring.Layout) int {
	size := 0
	for _, l := range layouts {
		size = max(size, l.InputBytes)
	}
	return size
}

// Load copies the graph's inputs of a batch from a ring slot to a device slot, in one piece, and returns when the copy
// is done. On a GPU the ring slot is pinned and the caller's thread bound to the context; the graphs continue
// meanwhile.
func (m *Model) Load(slot, bucket int, src []byte) error {
	src = src[:m.layouts[bucket].InputBytes]
	dst := &m.slots[slot]
	if !m.device.onGPU() {
		copy(dst.host, src)
		return nil
	}
	timer := m.device.Timer
	if err := errors.Join(
		timer.begin(Transferring), m.device.Transfer.Upload(dst.dev, 0, src), timer.end(Transferring),
	); err != nil {
		return err
	}
	if err := m.device.arrive(); err != nil {
		return err
	}
	return timer.transferred()
}

// Unload copies the graph's inputs from a device slot back to memory like that of Load, to check what arrived.
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

// Queue runs forward and backward of a player on the batch in a device slot and may return before that is done. The
// gradients are in the player's arena until its next call. Fetch and Result follow; the next batch, in another slot, or
// the next player may be queued between them.
func (m *Model) Queue(player, slot, bucket int, seed int64) error {
	*m.seeds[slot].value = seed
	p := m.players[player]
	return errors.Join(p.beside.begin(), m.send(m.in), m.sumTotals(&m.memory, m.in, slot),
		m.queue(Training, p.runs[slot][bucket]))
}

func (m *Model) queue(w Work, e execution) error {
	return errors.Join(m.blank(m.out), m.device.Timer.around(w, func() error { return m.run(e) }))
}

// Fetch queues the copy of the results of all queued work to the host.
func (m *Model) Fetch() error {
	if !m.Async() {
		return nil
	}
	m.device.Timer.queued()
	return errors.Join(m.receive(m.out), m.device.Compute.Record(m.done))
}

// Result waits for the copy of the last Fetch, and so for all work queued before it.
func (m *Model) Result() (Result, error) {
	if m.Async() {
		if err := errors.Join(m.done.Synchronize(), m.device.Timer.computed()); err != nil {
			return Result{}, err
		}
	}
	return m.result(), nil
}

// Train is Queue, Fetch and Result.
func (m *Model) Train(player, slot, bucket int, seed int64) (Result, error) {
	*m.seeds[slot].value = seed
	return m.compute(Training, m.players[player].runs[slot][bucket])
}

// Evaluate runs the evaluation graph, without dropout, and waits for the result.
func (m *Model) Evaluate(slot, bucket int) (Result, error) {
	return m.compute(Evaluating, m.evaluator.runs[slot][bucket])
}

func (m *Model) compute(w Work, e execution) (Result, error) {
	if err := errors.Join(m.send(m.in), m.queue(w, e), m.Fetch()); err != nil {
		return Result{}, err
	}
	return m.Result()
}

// Drain waits until nothing is queued, such as a batch whose result is no longer needed.
func (m *Model) Drain() error {
	if !m.Async() {
		return nil
	}
	return m.device.Compute.Synchronize()
}

// Bytes returns the memory of the weights with their copies and the state, of the gradients, and of the device slots.
func (m *Model) Bytes() (weights, grads, slots int) {
	for _, s := range m.slots {
		slots += s.size
	}
	for _, p := range m.players {
		weights += p.weights.size + p.copies.size + p.averages.size + p.state.bytes()
		grads += p.grads.size
	}
	return weights, grads, slots
}
