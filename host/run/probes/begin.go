package probes

import (
	"time"

	"github.com/xtts-host/xtts-host/host/run/loop"
)

// Begin opens what the settings ask for, before the loop runs, for a run in a folder. The run goes on without what
// cannot be opened. Of several ranks, the first has probes.
func Begin(l *loop.Loop, dir string) *Prober {
	c := l.Config()
	if !c.Plan.World.Leads() || c.Input.Measures() {
		return nil
	}
	last := c.Session.Model.Gradients
	if !c.Plan.World.Alone() { // the model's have been weighed, and summed over the ranks
		last = c.Session.Optimizers.Gradients
	}
	p, err := Open(Config{
		Shown: c.Plan.Probes, Model: c.Session.Model, Last: last, Bundle: c.Plan.Bundle,
		Threads: c.Plan.ThreadsBeside(), Dir: dir, Step: c.Progress.Step, EvaluatedStep: c.Progress.EvaluatedStep,
		Log: c.Log, Bus: c.Bus,
		Spent: func(began, ended time.Time) { l.Timeline.Trained("probes", nil, began, ended) },
	})
	if err != nil {
		c.Log.Warn("the run goes on without --probe: " + err.Error())
		return nil
	}
	if p != nil {
		l.Train.Evaluated = p.Take
	}
	return p
}
