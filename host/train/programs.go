package train

import (
	"errors"
	"maps"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// seedInput is the name of the input that drives dropout.
const seedInput = "seed"

// tensors are the inputs or outputs of graphs, by name.
type tensors map[string]*ort.Tensor

func (m *Model) build(cfg ModelConfig) {
	masters, copied, grads := m.parameters.allocate(&m.memory)
	metrics := cfg.Bundle.Manifest.OutputMetrics()
	m.in, m.out = m.words(cfg.Slots+1+m.scalarWords(cfg.Slots)), m.words(2+len(metrics))
	outputs := m.results.tensors(&m.memory, metrics)
	kept, now, next := m.state.allocate(&m.memory, cfg.Bundle.Manifest.State)
	asked := maps.Clone(grads) // for training; evaluation needs no gradients, and changes no state
	maps.Copy(asked, next)
	maps.Copy(asked, outputs)

	trainGraph, _ := cfg.Bundle.Manifest.Graph("train", string(m.precision))
	evalGraph, ok := cfg.Bundle.Manifest.Graph("eval", string(manifest.F32))
	evaluated := masters
	switch {
	case !ok && m.averages.arena != nil: // the averages are f32
		evalGraph, _ = cfg.Bundle.Manifest.Graph("train", string(manifest.F32))
	case !ok:
		evalGraph, evaluated = trainGraph, copied
	}
	if m.averages.arena != nil {
		evaluated = m.averagedViews(&m.memory, masters)
	}
	training := cfg.program(&m.memory, trainGraph, asked)
	evaluation := cfg.program(&m.memory, evalGraph, outputs)
	m.programs = []Program{training.Program, evaluation.Program}
	train := openTraining(m, cfg.Fuse, training.session)
	eval := m.open(evaluation.session, false)
	if cfg.CUDAGraphs && m.async != nil && m.err == nil {
		m.err = m.async.NoGraph() // until Prepare
	}
	m.makeSlots(cfg.Slots, func(slot int, batch tensors, noDropout *ort.Tensor) {
		maps.Copy(batch, copied)
		maps.Copy(batch, now)
		batch[seedInput] = m.seeds[slot].tensor
		if m.fusion == nil {
			m.train[slot] = append(m.train[slot], m.execution(train, batch, asked))
		} else {
			m.train[slot] = append(m.train[slot], m.fusion.bind(slot, len(m.train[slot]), batch, asked))
		}
		maps.Copy(batch, evaluated)
		maps.Copy(batch, kept)
		batch[seedInput] = noDropout
		m.eval[slot] = append(m.eval[slot], m.execution(eval, batch, outputs))
	})
}

// openTraining opens the training graph: as exported, and, if that is possible, fused.
func openTraining(m *Model, choice FuseConfig, exported ort.SessionConfig) *ort.Session {
	if choice.Compiler != nil && m.err == nil {
		m.fusion, m.unfused = newFusedGraphs(m, choice, exported)
	}
	if m.fusion != nil {
		shareArena(&m.memory)
		m.fusion.openAll(m.open(exported, false))
		if m.err == nil || errors.Is(m.err, ort.ErrOutOfMemory) {
			return m.fusion.exported
		}
		m.unfused, m.err = m.err, m.fusion.closeAll()
		m.fusion = nil
	}
	m.checkCapture(nil)
	return m.open(exported, m.capturing)
}

// captureChoice decides whether CUDA graphs are captured.
type captureChoice struct {
	capturing  bool
	capturable func(fused []byte) error // as in ModelConfig
	uncaptured error                    // why not although that was requested
}

// checkCapture decides against CUDA graphs if a graph cannot be captured: a fused one, or for nil the training graph as exported.
func (c *captureChoice) checkCapture(fused []byte) {
	if !c.capturing || c.capturable == nil {
		return
	}
	if c.uncaptured = c.capturable(fused); c.uncaptured != nil {
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
	m.train, m.eval = make([][]execution, slots), make([][]execution, slots)
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
	return program{
		Program: Program{File: g.File, Precision: g.Precision, Nodes: p.Nodes, SHA256: p.Hash()},
		session: ort.SessionConfig{Model: p.Model, Dir: p.Dir, Name: g.File, Threads: cfg.Threads},
	}
}

// Program is a graph that runs: a file of the bundle, pruned to the outputs that the run needs.
type Program struct {
	File, Precision string
	// Nodes and SHA256 are those of the pruned graph.
	Nodes  int
	SHA256 string
}

// Programs returns the training and the evaluation graph.
func (m *Model) Programs() (training, evaluation Program) { return m.programs[0], m.programs[1] }
