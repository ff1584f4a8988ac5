package train

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// average updates an exponential moving average of the trained weights after each step: the vector is the model's, which
// is evaluated with it.
type average struct {
	decay   float64
	rate    word[float32]
	updates []update
}

// bind makes what updates the average, if the model has one.
func (a *average) bind(o *Optimizer, g *graphs) {
	if o.model.averages.arena == nil {
		return
	}
	a.decay = o.model.decay
	a.rate = newWord[float32](&o.memory, o.in, manifest.F32)
	session := g.session(graph{name: averageGraph})
	for _, s := range o.segments {
		for _, over := range o.device.chunks(s.Range) {
			averages := o.flat(o.model.averages, over)
			e := o.execution(session, tensors{
				"average": averages, "param": o.flat(o.model.weights, over), "rate": a.rate.tensor, "finite": o.finite.tensor,
			}, tensors{"average_out": averages})
			a.updates = append(a.updates, update{e, fmt.Sprintf("element %d on", over.Start), []region{o.model.averages.region(over)}})
		}
	}
}

// averageGraph is the name of a graph that is made here, not exported.
const averageGraph = "average"

// next sets the rate of the next update of an average that has seen so many. One that has seen few follows the weights faster, so that it
// does not keep what it began with: the decay of update t, counted from 1, is min(decay, (1 + t) / (10 + t)).
func (a *average) next(seen int64) {
	if len(a.updates) > 0 {
		t := float64(seen + 1)
		*a.rate.value = float32(1 - min(a.decay, (1+t)/(10+t)))
	}
}

// BeginAverage has the average, if there is one, begin with the present weights. Push takes it over.
func (p *parameters) BeginAverage() {
	if p.averages.arena != nil {
		copy(ort.View[float32](p.averages.host), p.weights.numbers(p.arena.Trained()))
	}
}

// Average returns the average as tensors: the trained parameters, named as Weights names them. There is none unless
// ModelConfig.Average asks for one. On a GPU they are those of the last Pull.
func (p *parameters) Average() []checkpoint.Tensor {
	if p.averages.arena == nil {
		return nil
	}
	all := p.views("", p.averages)
	for i := range all {
		all[i].Average = true
	}
	return all
}

// averagedViews returns the parameters as an evaluation reads them: the average where there is one, else the master.
func (p *parameters) averagedViews(m *memory, masters tensors) tensors {
	views := tensors{}
	for i, param := range p.params {
		views[param.Name] = masters[param.Name]
		if at, ok := p.arena.Parameter(ortgraphs.State, i); ok {
			views[param.Name] = m.view(p.averages.block, at, param.Shape...)
		}
	}
	return views
}
