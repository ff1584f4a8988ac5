package train

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// average updates an exponential moving average of the trained weights after each step: the vector is the model's,
// which is evaluated with it.
type average struct {
	decay   float64
	rate    word[float32]
	updates []update
}

// bind makes what updates the average, if the model has one.
func (a *average) bind(o *Optimizer, g *graphs) {
	if o.player.averages.arena == nil {
		return
	}
	a.decay = o.player.decay
	a.rate = newWord[float32](&o.memory, o.in, manifest.F32)
	session := g.session(graph{name: averageGraph})
	for _, s := range o.segments {
		for _, over := range o.device.chunks(s.Range) {
			averages := o.flat(o.player.averages, over)
			e := o.execution(session, tensors{
				"average": averages, "param": o.flat(o.player.weights, over), "rate": a.rate.tensor,
				"finite": o.finite.tensor,
			}, tensors{"average_out": averages})
			a.updates = append(a.updates,
				update{e, fmt.Sprintf("element %d on", over.Start), []region{o.player.averages.region(over)}})
		}
	}
}

// averageGraph is the name of a graph that is made here, not exported.
const averageGraph = "average"

// next sets the rate of the next update of an average that has seen so many. One that has seen few follows the weights
// faster, so that it does not keep what it began with: the decay of update t, counted from 1, is min(decay, (1 + t) /
// (10 + t)).
func (a *average) next(seen int64) {
	if len(a.updates) > 0 {
		t := float64(seen + 1)
		*a.rate.value = float32(1 - min(a.decay, (1+t)/(10+t)))
	}
}

// beginAverage is BeginAverage for a player.
func (p *parameters) beginAverage() {
	if p.averages.arena != nil {
		copy(ort.View[float32](p.averages.host), p.weights.numbers(p.arena.Trained()))
	}
}

// average is Average for a player.
func (p *parameters) average() []checkpoint.Tensor {
	if p.averages.arena == nil {
		return nil
	}
	all := p.views("", p.averages)
	for i := range all {
		all[i].Average = true
	}
	return all
}
