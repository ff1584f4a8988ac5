package train

import (
	"errors"
	"fmt"
	"maps"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// player is one of those that train in turn on a batch: its parameters, and the training graph that returns their
// gradients. The graph may read the parameters of all players.
type player struct {
	parameters
	name    string
	program Program
	runs    [][]execution // by slot and bucket
	fusion  *fusedGraphs  // nil if the training graph runs as exported
	unfused error         // why it does although there is a compiler

	exported *ort.Session // of the graph as exported; with fusion, that has it
	beside   *beside      // nil unless the training graph may sum gradients over the ranks
}

// players are those of a model, in their order.
type players []*player

// newPlayers returns the players of a bundle, in their order.
func newPlayers(cfg ModelConfig) (all players) {
	for i, p := range cfg.Bundle.Manifest.InTurn() {
		arena := cfg.Arenas[i]
		all = append(all,
			&player{name: p.Name, parameters: parameters{params: arena.Parameters(), arena: arena, decay: cfg.Average}})
	}
	return all
}

// text names the player at the begin of a list; one without a name is not mentioned.
func (p *player) text() string {
	if p.name == "" {
		return ""
	}
	return p.name + ", "
}

// train opens the player's training graph. outputs has its gradients and scalars.
func (p *player) train(m *Model, cfg *ModelConfig, outputs tensors) {
	g, _ := cfg.Bundle.Manifest.TrainingGraph(p.name, m.precision)
	training := cfg.program(&m.memory, g, outputs)
	training.Player = p.name
	if cfg.Fuse.Compiler != nil {
		p.beside = newBeside(m, p, cfg.Ranks)
	}
	p.open(m, training, cfg.Fuse, true)
	maps.Copy(outputs, p.beside.outputs(&m.memory))
}

// open opens a graph, as exported, and, if that is possible, fused. captures allows to capture its runs.
func (p *player) open(m *Model, graph program, fuse FuseConfig, captures bool) {
	p.program = graph.Program
	if fuse.Compiler != nil && m.err == nil {
		p.fusion, p.unfused = newFusedGraphs(m, p, fuse, graph.session)
	}
	if p.fusion != nil {
		p.fusion.captures = captures
		shareArena(&m.memory)
		exported := graph.session
		exported.Unplanned = true
		p.fusion.openAll(m.open(exported, false))
		if m.err == nil || errors.Is(m.err, ort.ErrOutOfMemory) {
			return
		}
		p.unfused, m.err = m.err, p.fusion.closeAll()
		p.fusion = nil
	}
	if captures {
		m.checkCapture(graph.File, nil)
	}
	p.exported = m.open(graph.session, captures && m.capturing)
}

// bind binds the graph to the next bucket of a slot.
func (p *player) bind(m *Model, slot int, inputs, outputs tensors) {
	if slot == len(p.runs) {
		p.runs = append(p.runs, nil)
	}
	var e execution
	if p.fusion == nil {
		e = m.execution(p.exported, inputs, outputs)
	} else {
		e = p.fusion.bind(slot, len(p.runs[slot]), inputs, outputs)
	}
	p.runs[slot] = append(p.runs[slot], e)
}

// load reads the initial weights from a bundle.
func (all players) load(m *memory, b *ortgraphs.Bundle) error {
	f, err := b.Weights()
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range all {
		if err := p.load(m, f.Read); err != nil {
			return fmt.Errorf("%s: %w", b.Path(ortgraphs.WeightsFile), err)
		}
	}
	return nil
}

// each calls move for every player.
func (all players) each(move func(p *player) error) error {
	for _, p := range all {
		if err := move(p); err != nil {
			return err
		}
	}
	return nil
}

// gather joins what every player has.
func (all players) gather(of func(p *player) []checkpoint.Tensor) (tensors []checkpoint.Tensor) {
	for _, p := range all {
		tensors = append(tensors, of(p)...)
	}
	return tensors
}

// Weights returns the parameters and the state as tensors: player by player, each in the order of the bundle's list. On
// the CPU they change with every step; on a GPU they are those of the last Pull.
func (all players) Weights() []checkpoint.Tensor {
	return all.gather(func(p *player) []checkpoint.Tensor { return append(p.views("", p.weights), p.state.views()...) })
}

// Average returns the average as tensors: the trained parameters, named as Weights names them. There is none unless
// ModelConfig.Average asks for one. On a GPU they are those of the last Pull.
func (all players) Average() []checkpoint.Tensor {
	return all.gather(func(p *player) []checkpoint.Tensor { return p.average() })
}

// BeginAverage has the average, if there is one, begin with the present weights. Push takes it over.
func (all players) BeginAverage() {
	for _, p := range all {
		p.beginAverage()
	}
}

// Gradients returns the gradients of the last Train of each player by parameter, without the frozen ones. A window that
// ranks share without accumulation leaves its sum over the ranks there, each rank's gradients times its loss weight.
func (m *Model) Gradients() ([]checkpoint.Tensor, error) {
	if err := m.each(func(p *player) error { return m.pull(&p.grads.block) }); err != nil {
		return nil, err
	}
	return m.gather(func(p *player) []checkpoint.Tensor { return p.views("", p.grads) }), nil
}

// Pull updates Weights. On the CPU they are always up to date.
func (m *Model) Pull() error {
	return m.each(func(p *player) error {
		err := errors.Join(m.pull(&p.weights.block), p.state.pull(&m.memory))
		if err != nil || p.averages.arena == nil {
			return err
		}
		return m.pull(&p.averages.block)
	})
}

// Push copies Weights to the device after a change, and updates their bf16 copies.
func (m *Model) Push() error {
	return m.each(func(p *player) error {
		if err := p.upload(&m.memory); err != nil || p.averages.arena == nil {
			return err
		}
		return m.push(&p.averages.block)
	})
}
