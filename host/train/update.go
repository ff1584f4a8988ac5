package train

import (
	"errors"
	"fmt"
	"maps"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// forms are the forms of an update other than f32 vectors.
type forms struct {
	gradients bool // bf16 gradients
	copies    bool // bf16 copies of the weights
}

// graph is one of the optimizer graphs.
type graph struct {
	name string
	forms
}

// graphs opens the optimizer graphs, each once.
type graphs struct {
	*memory
	threads   int
	capturing bool
	open      map[graph]*ort.Session
}

func (g *graphs) session(which graph) *ort.Session {
	s, ok := g.open[which]
	if !ok {
		s = which.load(g.memory, g.threads, g.capturing)
		g.open[which] = s
	}
	return s
}

// load opens the graph.
func (g graph) load(m *memory, threads int, capturing bool) *ort.Session {
	var model []byte
	var err error
	switch g.name {
	case averageGraph:
		model, err = ortgraphs.Average()
	case chooseGraph:
		model, err = ortgraphs.Choose()
	case weighGraph:
		model, err = ortgraphs.Weigh(g.gradients)
	case weightedSumGraph:
		model, err = ortgraphs.WeightedSum()
	case deviationGraph:
		model, err = ortgraphs.Deviation()
	case stateMeanGraph:
		model, err = ortgraphs.MeanOfRanks()
	default:
		model, err = ortgraphs.OptimizerBF16(g.name, g.gradients, g.copies)
	}
	c := ort.SessionConfig{Model: model, Name: g.name, Threads: threads}
	if m.err = errors.Join(m.err, err); m.err == nil {
		_, m.err = steadied(m, &c, nil)
	}
	return m.open(c, capturing)
}

// vectors are the vectors of an update.
type vectors struct {
	weights, grads vector
	state          []vector
	copies         vector // empty without copies
}

// list returns them in the order of the kernel's arguments.
func (v vectors) list() []vector {
	all := append([]vector{v.weights, v.grads}, v.state...)
	if v.copies.arena != nil {
		all = append(all, v.copies)
	}
	return all
}

// segment is a part of the vectors with its own group and forms.
type segment struct {
	ortgraphs.Range
	forms
	group
}

// update is an update of a chunk of the vectors, or of one parameter.
type update struct {
	execution
	of      string   // what it updates
	written []region // what it writes, on a GPU
}

// vectors returns the vectors of a step.
func (o *Optimizer) vectors() vectors {
	return vectors{weights: o.player.weights, grads: o.window.grads, state: o.state, copies: o.player.copies}
}

// trainedSegments returns the trained segments of the gradients.
func trainedSegments(grads vector, p manifest.Optimizer) (all []segment) {
	for _, s := range grads.arena.Segments() {
		if !s.Trained {
			continue
		}
		part := segment{Range: s.Range, forms: forms{copies: s.Compute == manifest.BF16}}
		part.gradients = grads.span(s.Range).DType == manifest.BF16
		part.group = groupOf(p, s.Role)
		all = append(all, part)
	}
	return all
}

// bindUpdates binds the graph to the vectors, chunk by chunk.
func (o *Optimizer) bindUpdates(g *graphs) {
	v := o.vectors()
	for _, s := range o.segments {
		session, rates := g.session(graph{o.params.Name, s.forms}), o.rates(&o.memory, s.group)
		for _, over := range o.device.chunks(s.Range) {
			written := []region{v.weights.region(over)}
			for i := range v.state {
				written = append(written, v.state[i].region(over))
			}
			if s.copies {
				written = append(written, v.copies.region(over))
			}
			e := o.bind(&o.memory, session, o.rule, rates, v, s.forms, over)
			o.updates = append(o.updates, update{e, fmt.Sprintf("element %d on", over.Start), written})
		}
	}
}

// bind returns an execution of a rule's graph over a range.
func (s *scalars) bind(
	m *memory, session *ort.Session, r rule, rates rates, v vectors, f forms, over ortgraphs.Range,
) execution {
	inputs, outputs := maps.Clone(s.inputs), map[string]*ort.Tensor{}
	inputs["lr"], inputs["weight_decay"], inputs["grad"] = rates.lr, rates.weightDecay, m.flat(v.grads, over)
	// In place: the graph is elementwise, so it reads an element before it writes it.
	inputs["param"] = m.flat(v.weights, over)
	outputs["param_out"] = inputs["param"]
	for i, name := range r.state {
		inputs[name] = m.flat(v.state[i], over)
		outputs[name+"_out"] = inputs[name]
	}
	if f.copies {
		outputs["copy_out"] = m.flat(v.copies, over)
	}
	return m.execution(session, inputs, outputs)
}
