package ending

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// fakeCheckpoints has good checkpoints, all of which can be loaded.
type fakeCheckpoints []int64

func (f fakeCheckpoints) Good() ([]int64, error) { return f, nil }
func (f fakeCheckpoints) Sound(steps []int64) *checkpoint.Checkpoint {
	if len(steps) == 0 {
		return nil
	}
	return &checkpoint.Checkpoint{State: checkpoint.State{Step: steps[0]}}
}

func back(to *checkpoint.Checkpoint) string {
	if to == nil {
		return "start"
	}
	return fmt.Sprint("to ", to.State.Step)
}

// TestAdvise: an error of a run that diverged names the way back, and stays the same error; others have none.
func TestAdvise(t *testing.T) {
	ruined := &save.NotFiniteError{
		Step: 8, Err: &checkpoint.NotFiniteError{Tensor: "w", Shape: []int{1}, Value: math.NaN()},
	}
	skipped := fmt.Errorf("%w: 10 steps", train.ErrNotFinite)
	for _, c := range []struct {
		err  error
		good fakeCheckpoints
		want string
	}{
		{ruined, fakeCheckpoints{6, 4}, "the last good checkpoint is that of step 6; go back to it with: to 6"},
		{ruined, nil, "no checkpoint is known to be good, so start again with: start"},
		{skipped, fakeCheckpoints{6}, "listen to the clips of the skipped steps, or examine a step with " +
			"replay (docs/step.md); the last good checkpoint is that of step 6; go back to it with: to 6"},
		{errors.New("disk"), fakeCheckpoints{6}, ""},
		{nil, fakeCheckpoints{6}, ""},
	} {
		err := Advise(c.err, c.good, back)
		if hint.Of(err) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: %q, want %q", err, hint.Of(err), c.want)
		}
	}
	if !Ruined(fmt.Errorf("x: %w", ruined)) || Ruined(skipped) ||
		!strings.Contains(ruined.Error(), "after step 8, so they are not saved: w[0] is NaN") {
		t.Error(ruined)
	}
}

// TestMostlySkipped: more than half of the steps of the run, or of this process.
func TestMostlySkipped(t *testing.T) {
	for _, c := range []struct {
		before report.History
		steps  string // of this process: s for a skipped one
		want   string
	}{
		{report.History{}, "", ""},
		{report.History{}, "s.s.", ""},
		{report.History{}, "sss.", "3 of 4 steps were skipped"},
		{report.History{Steps: 100}, "sss.", "3 of 4 steps were skipped"},
		{report.History{Steps: 8, Skipped: 7}, "", "7 of 8 steps were skipped"},
		{report.History{Steps: 8, Skipped: 7}, "..........", ""},
	} {
		collector := report.NewCollector(nil, report.Before{Steps: c.before})
		for i, s := range c.steps {
			step := &event.Step{Step: c.before.Steps + int64(i) + 1, Loss: 1, Skipped: s == 's', Rows: []int32{1}}
			if err := collector.Take([]event.Event{step}); err != nil {
				t.Fatal(err)
			}
		}
		err := MostlySkipped(collector)
		if (err == nil) != (c.want == "") ||
			err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, train.ErrNotFinite)) {
			t.Errorf("%+v, %s: %v", c.before, c.steps, err)
		}
	}
}

// TestGood: an evaluation shows good weights if its loss is finite and not far above the best.
func TestGood(t *testing.T) {
	best := &train.Best{Loss: 2}
	for _, c := range []struct {
		loss float64
		best *train.Best
		want bool
	}{
		{2, best, true}, {19, best, true}, {20, best, false}, {math.NaN(), nil, false}, {math.Inf(1), best, false},
		{5, nil, true}, {5, &train.Best{Loss: -1}, true},
	} {
		if Good(c.loss, c.best) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// TestDiverged: losses that end far above the lowest level of the run, also where they have been there for long; noise
// is none of it.
func TestDiverged(t *testing.T) {
	flat := func(n int, loss float64) []float64 { return slices.Repeat([]float64{loss}, n) }
	far := &report.Evaluation{Step: 5, Loss: 900}
	for _, c := range []struct {
		name   string
		losses []float64
		e      *report.Evaluation
		best   *train.Best
		want   bool
	}{
		{"none", nil, nil, nil, false},
		{"from the second step", []float64{2.6, 7e4, 2e6}, nil, nil, true},
		{"for long", append(flat(20, 2), flat(200, 5e10)...), nil, nil, true},
		{"recovers", append(flat(20, 2), 5e3, 5e4, 3), nil, nil, false},
		{"noise", []float64{2, 9, 1, 15, 3, 8, 2, 12}, nil, nil, false},
		{"one step", []float64{2, 2, 2, 2, 30}, nil, nil, false},
		{"one step, and an evaluation", []float64{2, 2, 2, 2, 30}, far, &train.Best{Loss: 2}, true},
		{"an evaluation before the end", []float64{2, 2, 2, 2, 2, 2}, far, &train.Best{Loss: 2}, false},
		{"an evaluation alone", flat(5, 2), far, nil, true},
		{
			"an evaluation that is not finite", flat(5, 2), &report.Evaluation{Step: 5, Loss: report.Float(math.NaN())},
			nil, true,
		},
		{"a worse evaluation", flat(5, 2), &report.Evaluation{Step: 5, Loss: 15}, &train.Best{Loss: 1}, false},
		{"below 0", flat(5, -2), far, nil, false},
	} {
		var d report.Divergence
		losses := report.Losses{}
		for i, loss := range c.losses {
			d.Step(&event.Step{Step: int64(i + 1), Loss: loss, Rows: []int32{1}}, func(string, ...any) {})
			if losses.Last = report.Float(loss); i == 0 {
				losses.First = losses.Last
			}
		}
		err := diverged(&d, losses, int64(len(c.losses)), c.e, c.best)
		if errors.Is(err, ErrDiverged) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if good, _ := (until{fakeCheckpoints{9, 6, 3}, 6}).Good(); !slices.Equal(good, []int64{3}) {
		t.Error(good)
	}
}

// TestContinue: the hint names the step, and says that all ranks go on.
func TestContinue(t *testing.T) {
	for size, want := range map[int]string{
		1: "continue with --resume runs/a (step 7 is saved)",
		2: "continue all ranks with --resume runs/a (step 7 is saved)",
	} {
		err := Continue(exit.ErrInterrupted, "runs/a", 7, world.World{Size: size})
		if got := hint.Of(err); got != want {
			t.Errorf("%d ranks: %q, want %q", size, got, want)
		}
	}
}

// TestOutcome: the report has the error, and the hint that the console shows below it.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		err           error
		outcome, hint string
	}{
		{nil, report.Done, ""},
		{hint.Errorf("continue", "%w", exit.ErrInterrupted), report.Interrupted, "continue"},
		{hint.Errorf("go back", "it diverged"), "it diverged", "go back"},
		{errors.New("it failed"), "it failed", ""},
	} {
		if outcome, advice := Outcome(c.err); outcome != c.outcome || advice != c.hint {
			t.Errorf("%v: %q, %q", c.err, outcome, advice)
		}
	}
}
