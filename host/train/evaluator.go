package train

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// newEvaluator opens the evaluation graph. It is like a player without parameters and state of its own: it has no
// gradients, changes nothing, and reads [Model.Evaluated]. The players' graphs are open.
//
// It is fused if it needs more memory as exported than training does: with windows of convolutions and scores of
// attention in f32. Else it is not worth what compiling and proving take at the start.
func newEvaluator(m *Model, cfg *ModelConfig, g manifest.Graph, outputs tensors) *player {
	e, fuse := &player{}, cfg.Fuse
	p := cfg.program(&m.memory, g, outputs) // evaluation needs no gradients, and changes no state
	if m.err != nil {
		return e
	}
	planned, err := lifetime.OfFile(p.session.Model, bucketSizes(m.inputs, &m.layouts[len(m.layouts)-1]))
	if err != nil || !m.exceedsTraining(planned) {
		fuse.Compiler = nil
	}
	fuse.Costs, fuse.Form.BF16Attention = nil, false
	e.open(m, p, fuse, false)
	if e.fusion != nil {
		planned = e.fusion.largest
	}
	m.planMemory(planned, e)
	return e
}

// exceedsTraining reports whether a graph needs more memory than the training graphs, all of which are fused.
func (m *Model) exceedsTraining(l *lifetime.Plan) bool {
	var training []*lifetime.Plan
	for _, p := range m.players {
		if p.fusion == nil {
			return false
		}
		training = append(training, p.fusion.largest)
	}
	return l.Exceeds(training...)
}

// planMemory plans the arenas for evaluation, of which nothing may be known, and for training, in the order of
// [trial.settle].
func (m *Model) planMemory(evaluation *lifetime.Plan, evaluator *player) {
	plans := []*lifetime.Plan{}
	if evaluation != nil {
		plans = append(plans, evaluation)
	}
	for _, p := range m.players {
		if p.fusion == nil {
			continue
		}
		p.fusion.arena = lifetime.Arena(append(slices.Clone(plans), p.fusion.largest)...)
		if evaluator.fusion != nil {
			evaluator.fusion.arena = max(evaluator.fusion.arena, p.fusion.arena)
		}
	}
}

// variable is a tensor that a graph reads and a proof may change.
type variable struct {
	values []float32    // on the host
	send   func() error // copies what the graph reads of them to the GPU
	state  bool         // it may be a variance, which is not negative
}

// variables are those of the graph that is tried: a player's parameters, or all that evaluations read.
func (t *trial) variables() (list []variable) {
	if t.player != t.evaluator {
		return t.player.variables(t)
	}
	for _, p := range t.players {
		if t.evaluatesCopies {
			list = append(list, p.variables(t)...)
			continue
		}
		for _, param := range p.params {
			list = append(list, t.evaluated(param.Name))
		}
	}
	for _, p := range t.players {
		for _, s := range p.state.tensors {
			v := t.evaluated(s.Name)
			v.state = true
			list = append(list, v)
		}
	}
	return list
}

// evaluated is what evaluations read.
func (t *trial) evaluated(name string) variable {
	at := t.Evaluated.places[name]
	return variable{
		values: ort.View[float32](at.host[at.Offset:][:at.Bytes()]),
		send:   func() error { return sendSpan(t, at.block, at.Span) },
	}
}

// variables are the player's parameters.
func (p *player) variables(t *trial) (list []variable) {
	for i := range p.params {
		list = append(list, variable{values: p.weightsOf(i), send: func() error { return sendWeights(t, p, i) }})
	}
	return list
}

// returns reports whether the graph that is tried returns a metric.
func (t *trial) returns(metric int) bool {
	if t.player == t.evaluator {
		return t.fusion.returns("metric." + t.names[metric])
	}
	return t.players[t.owners[metric]] == t.player
}
