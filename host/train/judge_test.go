package train

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
)

// TestJudge: best, plateau and early stop follow the loss, or what a run judges evaluations by; a value that is not
// finite is never better.
func TestJudge(t *testing.T) {
	losses := []float64{3, 2, 1, 0.5}
	speech := []float64{7, 6, 9, math.NaN()} // it breaks while the loss falls
	for name, want := range map[string]struct {
		judge      func(*event.Evaluation) float64
		best       Best
		waiting    int
		reductions int
	}{
		"loss":   {nil, Best{4, 0.5, 0.5}, 0, 0},
		"speech": {func(e *event.Evaluation) float64 { return speech[e.Step-1] }, Best{2, 2, 6}, 2, 1},
	} {
		l := &Loop{Policy: Policy{
			Judge: want.judge, EarlyStop: schedule.EarlyStop{Evaluations: 2},
			Schedules: []schedule.Schedule{{Name: schedule.Plateau, Patience: 2}},
		}}
		l.Progress.Plateaus = make([]schedule.State, 1)
		for i, loss := range losses {
			l.judge(&event.Evaluation{Step: int64(i + 1), Loss: loss})
		}
		if p := l.Progress; *p.Best != want.best || p.EarlyStop.Evaluations != want.waiting ||
			p.Plateaus[0].Reductions != want.reductions ||
			l.Policy.EarlyStop.Over(p.EarlyStop) != (want.waiting == 2) {
			t.Errorf("by %s: best %+v, early stop %+v, plateau %+v", name, *p.Best, p.EarlyStop, p.Plateaus[0])
		}
	}
}
