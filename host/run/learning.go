package run

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// lowered reports that an evaluation has lowered the learning rate of a player.
func (o *observer) lowered(step int64) {
	for i, s := range o.run.loop.Train.Policy.Schedules {
		now := o.run.loop.Train.Progress.Plateaus[i].Reductions
		if now == o.reductions[i] {
			continue
		}
		o.reductions[i] = now
		lr, player := s.LR(max(step, s.WarmupSteps), now), o.run.plan.Players[i].Name
		args := []any{"step", step, "lr", lr}
		if player != "" {
			args = append(args, "player", player)
		}
		fmt.Fprintf(o.run.console.Out, "learning rate%s lowered to %g: no lower validation loss in %s\n", report.OfPlayer(player), lr, units.Count(s.Patience, "evaluation"))
		o.run.log.Info("learning rate lowered", args...)
	}
}

// stopped returns why the run ended before its last step, if the validation loss was the reason.
func (r *run) stopped() *report.EarlyStop {
	p, e := &r.loop.Train.Progress, r.loop.Train.Policy.EarlyStop
	if !e.Over(p.EarlyStop) {
		return nil
	}
	stop := &report.EarlyStop{Step: p.Step, Evaluations: p.EarlyStop.Evaluations, Delta: e.Delta}
	if best := p.EarlyStop.Best; best != nil {
		loss := report.Float(*best)
		stop.Best = &loss
	}
	return stop
}
