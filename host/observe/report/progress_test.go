package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

func progressStep(step int64) *event.Step {
	return &event.Step{
		Step: step, Loss: 1.2344, Metrics: []float64{0.3451}, LR: 2.9e-3, GradNorm: 0.8123,
		Times: event.Times{Time: 100 * time.Millisecond, InputWait: 400 * time.Microsecond},
	}
}

func TestProgress(t *testing.T) {
	p := Progress{Run: event.Start{Metrics: []string{"mel_loss"}, Total: 240, Every: 100}}
	var got []string
	for step := int64(1); step <= 240; step++ {
		w := progressStep(step)
		switch {
		case step == 1:
			w.Time = time.Minute // the pipeline fills: no speed is made of it
		case step > 200:
			w.InputWait, w.Bottleneck = 30*time.Millisecond, "target"
		}
		w.Skipped = step == 200
		if line := p.Step(w); line != "" {
			got = append(got, line)
		}
		if step == 100 {
			p.Work(&event.Work{Task: event.Evaluating, Ended: true, Time: 9900 * time.Millisecond})
			got = append(got, p.Evaluated(&event.Evaluation{
				Step: step, Loss: 1.5, Metrics: []float64{0.4}, Samples: 64, Time: 9900 * time.Millisecond, Best: true,
			}))
		}
	}
	want := []string{
		"step   1/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812",
		"step 100/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812   10.0 steps/s  input stall 0.4 %  " +
			"eta " +
			"14 s",
		"evaluation after step 100/240  loss 1.500  mel_loss 0.400  64 rows in 9.9 s (best)",
		"step 200/240  loss     -  mel_loss     -  lr 2.9e-03  grad_norm 0.812   10.0 steps/s  input stall 0.4 %  " +
			"eta " +
			"6.0 s",
		"step 240/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812   10.0 steps/s  input stall  30 " +
			"% (target)",
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

func TestProgressBesideABar(t *testing.T) {
	p := Progress{Run: event.Start{Metrics: []string{"mel_loss"}, Total: 240, Every: 1}, Bar: true}
	for step, want := range []string{
		"step   1/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812",
		"step   2/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812",
		"step   3/240  loss 1.234  mel_loss 0.345  lr 2.9e-03  grad_norm 0.812  input stall  30 % (target)",
	} {
		w := progressStep(int64(step + 1))
		if step == 2 {
			w.InputWait, w.Bottleneck = 30*time.Millisecond, "target"
		}
		if got := p.Step(w); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestProgressOfPlayers(t *testing.T) {
	p, w := Progress{Run: event.Start{Every: 1}}, progressStep(1)
	w.Players = []event.Player{{Name: "judge", GradNorm: 2}, {Name: "maker", GradNorm: w.GradNorm}}
	if got, want := p.Step(w), "step      1  loss 1.234  lr 2.9e-03  grad_norm 0.812 (judge 2.000)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProgressOff(t *testing.T) {
	var p Progress
	if line := p.Step(progressStep(1)); line != "" {
		t.Errorf("the zero value says %q", line)
	}
	p.Run.Every = 1 // and no total: the end is not known
	p.Step(progressStep(1))
	if got, want := p.Step(progressStep(2)),
		"step      2  loss 1.234  lr 2.9e-03  grad_norm 0.812   10.0 steps/s  input stall 0.4 %"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSkippedLine(t *testing.T) {
	p := Progress{Run: event.Start{Total: 240}}
	for _, c := range []struct {
		w    event.Step
		want string
	}{
		{event.Step{Loss: math.NaN()}, "step   7/240  skipped: every row is empty"},
		{
			event.Step{Loss: math.NaN(), Rows: []int32{1}},
			"step   7/240  skipped: the loss is not finite (NaN); rows LJ001",
		},
		{event.Step{Loss: 1, GradNorm: math.Inf(1), Rows: []int32{1, 2, 3, 4, 5}}, "step   7/240  skipped: the " +
			"gradients are not finite (grad_norm +Inf); rows LJ001, LJ002, LJ003, LJ004, LJ005"},
		{
			event.Step{Loss: math.Inf(-1), Rows: []int32{1, 2, 3, 4, 5, 6, 7, 8}},
			"step   7/240  skipped: the loss is not finite (-Inf); rows LJ001, LJ002, LJ003, LJ004, LJ005 and 3 more",
		},
		{
			event.Step{Loss: math.NaN(), Rows: []int32{1}, Others: 9, Ranks: []event.RankRows{
				{Named: []string{"LJ001"}, Samples: 1}, {Named: []string{"LJ2", "LJ3", "LJ4"}, Samples: 5, Bad: true},
				{Named: []string{"LJ9"}, Samples: 4, Bad: true},
			}},
			"step   7/240  skipped: the loss is not finite (NaN); rows LJ2, LJ3 of rank 1, LJ9 of rank 2 and 6 more",
		},
		{
			event.Step{Loss: 1, GradNorm: math.Inf(1), Others: 5, Ranks: []event.RankRows{
				{}, {Named: []string{"LJ2", "LJ3"}, Samples: 5},
			}},
			"step   7/240  skipped: the gradients are not finite (grad_norm +Inf); rows LJ2, LJ3 of rank 1 and 3 more",
		},
		{event.Step{Loss: 1, GradNorm: 3, Rows: []int32{1}, Players: []event.Player{
			{Name: "judge", GradNorm: math.Inf(1), Skipped: true}, {Name: "maker", GradNorm: 3},
		}},
			"step   7/240  skipped by judge: the gradients are not finite (grad_norm +Inf); rows LJ001"},
	} {
		c.w.Step, c.w.Skipped = 7, true
		for _, row := range c.w.Rows[:min(event.MaxNamed, len(c.w.Rows))] {
			c.w.Named = append(c.w.Named, fmt.Sprintf("LJ%03d", row))
		}
		if got := p.Skipped(&c.w); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestProgressOfSlowSteps: without a bar, a line is due after 30 s of steps, whatever the number.
func TestProgressOfSlowSteps(t *testing.T) {
	for _, p := range []Progress{{Run: event.Start{Every: 100}}, {Run: event.Start{Every: 100}, Bar: true}, {}} {
		var said []int64
		for step := int64(1); step <= 12; step++ {
			w := progressStep(step)
			w.Time = 8 * time.Second
			if p.Step(w) != "" {
				said = append(said, step)
			}
		}
		want := map[bool]string{true: "[1 5 9]", false: "[1]"}[!p.Bar]
		if p.Run.Every == 0 {
			want = "[]"
		}
		if got := fmt.Sprint(said); got != want {
			t.Errorf("a line each %d, bar %v: lines after %s, want %s", p.Run.Every, p.Bar, got, want)
		}
	}
}
