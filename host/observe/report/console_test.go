package report

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestConsole looks at what a person gets on which stream.
func TestConsole(t *testing.T) {
	var out, warnings bytes.Buffer
	c := NewConsole(&out, &warnings, nil)
	c.Take(events(&event.Message{Text: "banner\n"}, &event.Message{Text: "stopping\n", Err: true}, metricsStep(1)))
	c.Take(events(&event.Start{Metrics: []string{"mel_loss", "stop_loss"}, Total: 2, Every: 1}))
	skipped := metricsStep(1)
	skipped.Skipped, skipped.Named = true, []string{"h", "d", "b"}
	c.Take(events(&event.Phase{Phase: event.WarmingUp},
		&event.Phase{Phase: event.Training, Ready: 3, Filling: 1250 * time.Millisecond}, skipped,
		&event.Memory{Role: "Model", Used: 1 << 20, Limit: 2 << 20},
		&event.Memory{Step: 1, Role: "Model", GPU: 1, Used: 1 << 20, Limit: 2 << 20},
		&event.Warning{Text: "w (step 1)"}, &event.Warning{Text: "e", Error: true}))
	c.Take(
		events(&event.Evaluation{Step: 1, Loss: 1, Metrics: []float64{2, 3}, Samples: 4, Time: time.Second, Best: true},
			&event.Lowered{Step: 1, Player: "generator", LR: 5e-4, Patience: 2},
			&event.Adapted{Step: 17, What: event.Depth, From: 2, To: 4, Why: "a reason"},
			&event.Adapted{Step: 17, What: event.Decoders, From: 2, To: 1, Why: "another"},
			&event.Adapted{Step: 17, What: "mix", From: 1, To: 2, Why: "another"}, &event.Finish{}, metricsStep(2),
			&event.Pace{Step: 20, Mean: 101, Std: 20, Rate: 9.9, Variation: 0.2, Stall: 0.01}))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	want := `banner
waiting for the data pipeline to warm up
training starting now: 3 batches ready after 1.25 s

step 1/2  skipped: the gradients are not finite (grad_norm 0.8125); rows h, d, b
step 1/2  loss     -  mel_loss     -  stop_loss     -  lr 1.0e-05  grad_norm 0.812
[Step 1] Model GPU 1: 1/2MB (50.0%)
evaluation after step 1/2  loss 1.000  mel_loss 2.000  stop_loss 3.000  4 rows in 1.0 s (best)
learning rate of generator lowered to 0.0005: no lower validation loss in 2 evaluations
adaptive: 4 instead of 2 batches ahead: a reason
adaptive: 1 instead of 2 decoders: another
adaptive: 2 instead of 1 processes of plugin mix: another
step 2/2  loss 0.500  mel_loss 0.500  stop_loss 0.250  lr 1.0e-05  grad_norm 0.812    9.9 steps/s  input stall 1.5 %
pipeline  step 101.0 ± 20.0 ms  9.9 steps/s  variation 20 %  stall 1.0 %
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := warnings.String(), "stopping\nwarning: w (step 1)\nerror: e\n"; got != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestConsoleFolds: on a terminal, a line that is wider is folded under its first column. Elsewhere it stays as it is.
func TestConsoleFolds(t *testing.T) {
	const line = "  data         a list of a hundred clips in a folder whose name is long enough to reach the end of " +
		"the line\n"
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		c := NewConsole(&out, &out, nil)
		if terminal {
			c.OnTerminal(true)
		}
		if err := c.Take([]event.Event{&event.Message{Text: line}}); err != nil {
			t.Fatal(err)
		}
		want := line
		if terminal {
			want = "  data         a list of a hundred clips in a folder whose name is long enough\n" +
				"               to reach the end of the line\n"
		}
		if out.String() != want {
			t.Errorf("on a terminal: %t\n%q", terminal, out.String())
		}
	}
}

// TestConsoleIsNotSilent: without a terminal, a line comes every 10 s before training and every 30 s in it (45 s within
// a step), not more; with --log-every 0 none does.
func TestConsoleIsNotSilent(t *testing.T) {
	for _, every := range []int64{100, 0} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			var shown atomic.Pointer[event.Snapshot]
			show := func(s event.Snapshot) { shown.Store(&s) }
			show(event.Snapshot{})
			c := NewConsole(&out, &out, nil)
			c.Live(func() event.Snapshot { return *shown.Load() })
			began := time.Now()
			show(event.Snapshot{Phase: event.Preparing, Work: &event.Work{
				Task: event.Opening, Unit: "plugins and graphs", Began: began,
			}})
			time.Sleep(25 * time.Second)
			synctest.Wait()
			c.Take(events(&event.Start{Metrics: []string{"mel_loss", "stop_loss"}, Total: 9, Every: every}))
			training := event.Snapshot{Phase: event.Training, Run: event.Start{Total: 9}}
			show(training)
			for n := range int64(4) { // the first, and then one that is late
				time.Sleep(16 * time.Second)
				s := metricsStep(n + 1)
				s.Time, training.Step = 16*time.Second, n+1
				show(training)
				c.Take(events(s))
			}
			evaluating := training
			evaluating.Work = &event.Work{
				Task: event.Evaluating, Unit: "batches", Done: 1, Of: 4, Began: time.Now(), Time: 20 * time.Second,
			}
			show(evaluating)
			time.Sleep(70 * time.Second)
			synctest.Wait()
			show(training)
			time.Sleep(40 * time.Second)
			synctest.Wait()
			c.Take(events(&event.Finish{}))
			time.Sleep(time.Hour)
			c.Close()
			want := "opening plugins and graphs, 10 s so far\nopening plugins and graphs, 20 s so far\n"
			if every > 0 {
				want += `step 1/9  loss 1.000  mel_loss 0.500  stop_loss 0.250  lr 1.0e-05  grad_norm 0.812
step 3/9  loss 0.333  mel_loss 0.500  stop_loss 0.250  lr 1.0e-05  grad_norm 0.812   0.06 steps/s  input stall 0.0 %  eta 1 min 36 s
evaluating 1/4 batches, 14 s so far, 1 min 06 s left
evaluating 1/4 batches, 44 s so far, 36 s left
step 5/9  is not complete yet
`
			}
			if got := out.String(); got != want {
				t.Errorf("--log-every %d: got\n%swant\n%s", every, got, want)
			}
		})
	}
}
