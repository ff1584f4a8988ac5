package train

import "github.com/xtts-host/xtts-host/host/observe/event"

// judge decides whether an evaluation is the best so far, and tells schedules and early stop of it.
func (l *Loop) judge(e *event.Evaluation) {
	p, value := &l.Policy, e.Loss
	if p.Judge != nil {
		value = p.Judge(e)
	}
	if best := l.Progress.Best; isFinite(value) && (best == nil || value < best.Value) {
		l.Progress.Best = &Best{e.Step, e.Loss, value}
	}
	if p.Counted == nil || p.Counted(e.Step) {
		for i, s := range p.Schedules {
			s.Observe(&l.Progress.Plateaus[i], e.Step, value)
		}
		p.EarlyStop.Observe(&l.Progress.EarlyStop, value)
	}
}
