package ending

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/save"
	"github.com/xtts-host/xtts-host/host/train"
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
	ruined := &save.NotFiniteError{Step: 8, Err: &checkpoint.NotFiniteError{Tensor: "w", Shape: []int{1}, Value: math.NaN()}}
	skipped := fmt.Errorf("%w: 10 steps", train.ErrNotFinite)
	for _, c := range []struct {
		err  error
		good fakeCheckpoints
		want string
	}{
		{ruined, fakeCheckpoints{6, 4}, "the last good checkpoint is that of step 6; go back to it with: to 6"},
		{ruined, nil, "no checkpoint is known to be good, so start again with: start"},
		{skipped, fakeCheckpoints{6}, "listen to the clips of the skipped steps; the last good checkpoint is that of step 6; go back to it with: to 6"},
		{errors.New("disk"), fakeCheckpoints{6}, ""},
		{nil, fakeCheckpoints{6}, ""},
	} {
		err := Advise(c.err, c.good, back)
		if hint.Of(err) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: %q, want %q", err, hint.Of(err), c.want)
		}
	}
	if !Ruined(fmt.Errorf("x: %w", ruined)) || Ruined(skipped) || !strings.Contains(ruined.Error(), "after step 8, so they are not saved: w[0] is NaN") {
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
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, train.ErrNotFinite)) {
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
	}{{2, best, true}, {19, best, true}, {20, best, false}, {math.NaN(), nil, false}, {math.Inf(1), best, false}, {5, nil, true}, {5, &train.Best{Loss: -1}, true}} {
		if Good(c.loss, c.best) != c.want {
			t.Errorf("%+v", c)
		}
	}
}
