package host

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/report"
)

// lowered reports that an evaluation has lowered the learning rate.
func (o *observer) lowered(step int64) {
	p, policy := &o.run.loop.Train.Progress, &o.run.loop.Train.Policy
	if p.Plateau.Reductions == o.reductions {
		return
	}
	o.reductions = p.Plateau.Reductions
	s := policy.Schedule
	fmt.Fprintf(o.run.console.Out, "learning rate lowered to %g: no lower validation loss in %s\n",
		s.LR(max(step, s.WarmupSteps), o.reductions), report.Count(s.Patience, "evaluation"))
	o.run.log.Info("learning rate lowered", "step", step, "lr", s.LR(max(step, s.WarmupSteps), o.reductions))
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
