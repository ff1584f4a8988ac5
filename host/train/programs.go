package train

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// seedInput is the name of the input that drives dropout.
const seedInput = "seed"

// tensors are the inputs or outputs of graphs, by name.
type tensors map[string]*ort.Tensor

func (m *Model) build(cfg ModelConfig) {
	copied, kept := tensors{}, tensors{}
	made, now := make([]tensors, len(m.players)), make([]tensors, len(m.players))
	for i, p := range m.players {
		made[i] = p.allocate(&m.memory, copied)
		now[i] = p.state.allocate(&m.memory, cfg.Bundle.Manifest.StateOf(p.name), kept, made[i])
	}
	metrics := cfg.Bundle.Manifest.OutputMetrics()
	m.in, m.out = m.words(cfg.Slots+1+m.scalarWords(cfg.Slots)), m.words(2+len(metrics))
	outputs := m.results.tensors(&m.memory, metrics)
	m.owners = owners(cfg.Bundle.Manifest)
	for i, p := range m.players {
		maps.Copy(made[i], outputs)
		p.train(m, &cfg, made[i])
	}
	m.Evaluated = newEvaluated(m)
	evalGraph, evaluated, copies := cfg.evalGraph(m, copied)
	m.evaluatesCopies = copies
	m.evaluator = newEvaluator(m, &cfg, evalGraph, outputs)
	if cfg.CUDAGraphs && m.async != nil && m.err == nil {
		m.err = m.async.NoGraph() // until Prepare
	}
	m.makeSlots(cfg.Slots, func(slot int, batch tensors, noDropout *ort.Tensor) {
		maps.Copy(batch, copied)
		batch[seedInput] = m.seeds[slot].tensor
		for i, p := range m.players {
			maps.Copy(batch, kept) // of the other players
			maps.Copy(batch, now[i])
			p.bind(m, slot, batch, made[i])
		}
		maps.Copy(batch, evaluated)
		maps.Copy(batch, kept)
		batch[seedInput] = noDropout
		m.evaluator.bind(m, slot, batch, outputs)
	})
}

// evalGraph returns the graph of evaluations and the parameters that it reads: without an eval graph, the training
// graph of the last player, which reads copies.
func (cfg *ModelConfig) evalGraph(m *Model, copied tensors) (g manifest.Graph, reads tensors, copies bool) {
	b := cfg.Bundle.Manifest
	g, ok := b.EvalGraph()
	if !ok && cfg.Average == 0 {
		g, _ = b.TrainingGraph(b.Last().Name, m.precision)
		return g, copied, true
	}
	if !ok { // the averages are f32
		g, _ = b.TrainingGraph(b.Last().Name, manifest.F32)
	}
	return g, m.Evaluated.Tensors, false
}

// owners returns the index of the player that each metric belongs to.
func owners(b *manifest.Bundle) (players []int) {
	for _, t := range b.Outputs {
		if t.IsMetric() {
			players = append(players,
				slices.IndexFunc(b.InTurn(), func(p manifest.Player) bool { return p.Name == t.Player }))
		}
	}
	return players
}

// captureChoice decides whether CUDA graphs are captured.
type captureChoice struct {
	capturing  bool
	capturable func(file string, fused []byte) error // as in ModelConfig
	uncaptured error                                 // why not although that was requested
}

// checkCapture decides against CUDA graphs if a training graph cannot be captured: fused, or for nil the file as
// exported.
func (c *captureChoice) checkCapture(file string, fused []byte) {
	if !c.capturing || c.capturable == nil {
		return
	}
	if c.uncaptured = c.capturable(file, fused); c.uncaptured != nil {
		c.capturing = false
	}
}

// tensors allocates them in the block of words.
func (r *results) tensors(m *memory, metrics []string) tensors {
	r.loss, r.weight = newWord[float32](m, r.out, manifest.F32), newWord[float32](m, r.out, manifest.F32)
	all := tensors{"loss": r.loss.tensor, "loss_weight": r.weight.tensor}
	for _, name := range metrics {
		w := newWord[float32](m, r.out, manifest.F32)
		all["metric."+name] = w.tensor
		r.metrics = append(r.metrics, w)
	}
	r.names, r.values = metrics, make([]float64, len(r.metrics))
	return all
}

// makeSlots allocates the device slots and calls bind for the executions of each slot and bucket.
func (m *Model) makeSlots(slots int, bind func(slot int, batch tensors, noDropout *ort.Tensor)) {
	noDropout := newWord[int64](&m.memory, m.in, manifest.I64)
	*noDropout.value = -1
	size := SlotBytes(m.layouts)
	m.done = m.event()
	for slot := range slots {
		mem := m.block(size)
		m.slots = append(m.slots, mem)
		m.seeds = append(m.seeds, newWord[int64](&m.memory, m.in, manifest.I64))
		m.addSlot(&m.memory, m.in)
		for _, layout := range m.layouts {
			batch := tensors{}
			for _, t := range layout.Tensors {
				if t.Offset < layout.InputBytes {
					batch[t.Name] = m.tensor(mem, t.Offset, t.DType, t.Shape...)
				}
			}
			m.bindScalars(slot, batch)
			bind(slot, batch, noDropout.tensor)
		}
	}
}

// program is a graph with the configuration of its session.
type program struct {
	Program
	session ort.SessionConfig
}

// program prunes one of the bundle's graphs to the bound outputs.
func (cfg *ModelConfig) program(m *memory, g manifest.Graph, outputs tensors) (out program) {
	if m.err != nil {
		return out
	}
	p, err := cfg.Bundle.Program(g, func(output string) bool { return outputs[output] != nil })
	if err != nil {
		m.err = err
		return out
	}
	session := ort.SessionConfig{Model: p.Model, Dir: p.Dir, Name: g.File, Threads: cfg.Threads}
	alone, err := steadied(m, &session, cfg.Layouts)
	if err != nil {
		m.err = fmt.Errorf("%s: %w", cfg.Bundle.Path(g.File), err)
		return out
	}
	return program{
		Program: Program{File: g.File, Precision: g.Precision, Nodes: p.Nodes, SHA256: p.Hash(), OneThread: alone},
		session: session,
	}
}

// Program is a graph that runs: a file of the bundle, pruned to the outputs that the run needs.
type Program struct {
	Player          string // of a training graph; empty if there is one player
	File, Precision string
	// Nodes and SHA256 are those of the pruned graph.
	Nodes  int
	SHA256 string
	// OneThread is the node because of which one thread computes the graph, with Device.Deterministic on the CPU.
	OneThread string
}

// Programs returns the training graph of each player, and the evaluation graph.
func (m *Model) Programs() (training []Program, evaluation Program) {
	for _, p := range m.players {
		training = append(training, p.program)
	}
	return training, m.evaluator.program
}
