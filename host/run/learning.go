package run

import "github.com/xtts-host/xtts-host/host/observe/event"

// publishLowered publishes that an evaluation has lowered the learning rate of a player.
func (o *observer) publishLowered(step int64) {
	for i, s := range o.run.loop.Train.Policy.Schedules {
		now := o.run.loop.Train.Progress.Plateaus[i].Reductions
		if now == o.reductions[i] {
			continue
		}
		o.reductions[i] = now
		o.run.bus.Publish(&event.Lowered{Step: step, Player: o.run.plan.Players[i].Name, LR: s.LR(max(step, s.WarmupSteps), now), Patience: s.Patience})
	}
}

// earlyStop returns why the run ended before its last step, if the validation loss was the reason.
func (r *run) earlyStop() *event.EarlyStop {
	p, e := &r.loop.Train.Progress, r.loop.Train.Policy.EarlyStop
	if !e.Over(p.EarlyStop) {
		return nil
	}
	return &event.EarlyStop{Step: p.Step, Evaluations: p.EarlyStop.Evaluations, Best: p.EarlyStop.Best, Delta: e.Delta}
}
