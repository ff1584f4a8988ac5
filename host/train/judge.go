package train

import (
	"context"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// judge decides whether an evaluation is the best so far, and tells schedules and early stop of it. If a stop has cut
// Policy.Judge short, it changes nothing and returns the cause: "no better" would be wrong, and a resumed run would
// keep that.
func (l *Loop) judge(ctx context.Context, e *event.Evaluation) error {
	p := &l.Policy
	value, err := l.value(ctx, e)
	if err != nil {
		return err
	}
	l.Progress.EvaluatedStep = e.Step
	if best := l.Progress.Best; isFinite(value) && (best == nil || value < best.Value) {
		l.Progress.Best = &Best{e.Step, e.Loss, value}
	}
	unknown := p.Judge != nil && l.Progress.Best == nil // nothing to be better than, yet
	if !unknown && (p.Counted == nil || p.Counted(e.Step)) {
		for i, s := range p.Schedules {
			s.Observe(&l.Progress.Plateaus[i], e.Step, value)
		}
		p.EarlyStop.Observe(&l.Progress.EarlyStop, value)
	}
	return nil
}

// stopped returns why the run ends, or nil. Policy.Judge may have seen Stop before ctx is done.
func (l *Loop) stopped(ctx context.Context) error {
	if l.stopping() {
		return exit.ErrInterrupted
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
