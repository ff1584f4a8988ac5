package train

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// TestJudge: best, plateau and early stop follow the loss, or what a run judges evaluations by; a value that is not
// finite is never better. Until there is one, no evaluation counts.
func TestJudge(t *testing.T) {
	losses := []float64{3, 2, 1, 0.5}
	speech := []float64{7, 6, 9, math.NaN()} // it breaks while the loss falls
	late := []float64{math.NaN(), math.NaN(), math.NaN(), 6}
	for name, want := range map[string]struct {
		judge      func(*event.Evaluation) float64
		best       Best
		waiting    int
		reductions int
	}{
		"loss":              {nil, Best{4, 0.5, 0.5}, 0, 0},
		"speech":            {func(e *event.Evaluation) float64 { return speech[e.Step-1] }, Best{2, 2, 6}, 2, 1},
		"what is not there": {func(e *event.Evaluation) float64 { return late[e.Step-1] }, Best{4, 0.5, 6}, 0, 0},
	} {
		l := &Loop{Policy: Policy{
			Judge: want.judge, EarlyStop: schedule.EarlyStop{Evaluations: 2},
			Schedules: []schedule.Schedule{{Name: schedule.Plateau, Patience: 2}},
		}}
		l.Progress.Plateaus = make([]schedule.State, 1)
		for i, loss := range losses {
			if err := l.judge(t.Context(), &event.Evaluation{Step: int64(i + 1), Loss: loss}); err != nil {
				t.Fatal(err)
			}
		}
		if p := l.Progress; *p.Best != want.best || p.EarlyStop.Evaluations != want.waiting ||
			p.Plateaus[0].Reductions != want.reductions ||
			l.Policy.EarlyStop.Over(p.EarlyStop) != (want.waiting == 2) {
			t.Errorf("by %s: best %+v, early stop %+v, plateau %+v", name, *p.Best, p.EarlyStop, p.Plateaus[0])
		}
	}
}

// TestStopWhileJudging: an evaluation that a stop keeps from being judged has not taken place, so that a resumed run
// has it. One that was judged when the stop came counts, and so does any by the loss.
func TestStopWhileJudging(t *testing.T) {
	for name, c := range map[string]struct {
		value float64 // of the judge; 0 for none
		taken bool
	}{"cut short": {math.NaN(), false}, "judged": {2, true}, "by the loss": {0, true}} {
		r, stop := &record{}, make(chan struct{})
		f := &feed{batches: []pipeline.Batch{{Eval: true, Last: true, Rows: []int32{0, 1, 2, 3}}}}
		l := newLoop(t, f, r, false)
		l.Stop, l.Progress.Step, l.Progress.EvaluatedStep = stop, 7, 5
		l.Policy.EarlyStop.Evaluations = 2
		l.Policy.Schedules[0] = schedule.Schedule{Name: schedule.Plateau, Patience: 2, BaseLR: 1e-3}
		l.Progress.Plateaus = make([]schedule.State, 1)
		if f.before = func(*pipeline.Batch) { close(stop) }; c.value != 0 {
			f.before = nil
			l.Policy.Judge = func(*event.Evaluation) float64 { close(stop); return c.value }
		}
		was := l.Progress
		was.Plateaus = make([]schedule.State, 1)
		if err := l.Run(t.Context()); err != nil && !errors.Is(err, exit.ErrInterrupted) || err == nil && !c.taken {
			t.Errorf("%s: %v", name, err)
		}
		if (len(r.evals) == 1) != c.taken || reflect.DeepEqual(l.Progress, was) == c.taken ||
			c.taken && (l.Progress.EvaluatedStep != 7 || l.Progress.Best == nil) {
			t.Errorf("%s: %d evaluations, %+v, was %+v", name, len(r.evals), l.Progress, was)
		}
	}
}
