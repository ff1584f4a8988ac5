package run

import "github.com/xtts-host/xtts-host/host/observe/event"

// earlyStop returns why the run ended before its last step, if the validation loss was the reason.
func (r *run) earlyStop() *event.EarlyStop {
	p, e := &r.loop.Train.Progress, r.loop.Train.Policy.EarlyStop
	if !e.Over(p.EarlyStop) {
		return nil
	}
	return &event.EarlyStop{
		Step: p.Step, Evaluations: p.EarlyStop.Evaluations, Best: p.EarlyStop.Best, Delta: e.Delta, By: r.plan.BestBy(),
	}
}
