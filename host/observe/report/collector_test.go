package report

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// timed is a window whose times are known.
func timed(step int64, bucket int, total, wait time.Duration) *event.Step {
	return &event.Step{
		Step: step, Bucket: bucket, Loss: 10 / float64(step), Metrics: []float64{float64(step)}, Rows: make([]int32, 4),
		Frames: 50,
		Times: event.Times{
			Time: total, InputWait: wait, Train: 60 * time.Millisecond, Optimize: 10 * time.Millisecond,
		},
	}
}

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

func TestCollectorLeavesTheFirstStepOut(t *testing.T) {
	c := NewCollector([]string{"mel_loss"}, Before{})
	for step := int64(1); step <= 21; step++ {
		w := timed(step, int(step%2), 100*time.Millisecond, 20*time.Millisecond)
		if step == 1 {
			w.Time, w.InputWait = 5*time.Second, 4*time.Second
		}
		c.Take(events(w))
	}
	r := complete(c, Report{}, Measured{})
	if r.Steps != 21 || r.Samples != 84 || r.Frames != 21*50 || r.ResumedAt != 0 || r.SkippedSteps != 0 {
		t.Errorf("counts: %+v", r)
	}
	near(t, "loss.first", float64(r.Loss.First), 10)
	near(t, "loss.last", float64(r.Loss.Last), 10.0/21)
	s := r.StepMs
	if !s.FirstStepExcluded || s.Steps != 20 || s.Max != 100 || s.ByBucket[0].Steps != 10 || s.ByBucket[1].Steps != 10 {
		t.Errorf("step_ms: %+v", s)
	}
	if g := r.GradientsMs; g.Steps != 20 || g.Min != 60 || g.Max != 60 {
		t.Errorf("gradients_ms: %+v", g)
	}
	near(t, "steps_per_second", r.StepsPerSecond, 10)
	near(t, "frames_per_second", r.FramesPerSecond, 500)
	near(t, "input_stall_ratio", r.InputStallRatio, 0.2)
	want := (Phases{{"wait", 20}, {"train", 60}, {"optimizer", 10}, {"other", 10}})
	if !reflect.DeepEqual(r.PhasesMs, want) {
		t.Errorf("phases_ms %v, want %v", r.PhasesMs, want)
	}
}

// TestCollectorLeavesWarmStepsOut: their time does not count, nor that of the first step after them, but what they
// trained does.
func TestCollectorLeavesWarmStepsOut(t *testing.T) {
	c := NewCollector([]string{"mel_loss"}, Before{Warm: 9})
	for step := int64(1); step <= 21; step++ {
		w := timed(step, 0, 100*time.Millisecond, 20*time.Millisecond)
		if step <= 10 {
			w.Time, w.InputWait = 5*time.Second, 4*time.Second
		}
		c.Take(events(w))
	}
	r := complete(c, Report{}, Measured{})
	if s := r.StepMs; r.Steps != 21 || r.ResumedAt != 0 || !s.FirstStepExcluded || s.Steps != 11 || s.Max != 100 {
		t.Errorf("%d steps from %d, step_ms: %+v", r.Steps, r.ResumedAt, s)
	}
	near(t, "steps_per_second", r.StepsPerSecond, 10)
	near(t, "input_stall_ratio", r.InputStallRatio, 0.2)
	c = NewCollector([]string{"mel_loss"}, Before{Warm: 9})
	c.Take(events(timed(1, 0, time.Second, 0)))
	if r := complete(c, Report{}, Measured{}); r.Steps != 1 || r.StepMs.Steps != 0 || r.StepsPerSecond != 0 {
		t.Errorf("a run of warm steps alone: %+v", r)
	}
}

func TestCollectorOfShortRuns(t *testing.T) {
	c := NewCollector([]string{"mel_loss"}, Before{})
	r := complete(c, Report{}, Measured{})
	if !math.IsNaN(float64(r.Loss.First)) || r.Evaluation != nil || r.StepMs.Steps != 0 || r.StepsPerSecond != 0 {
		t.Errorf("without a step: %+v", r)
	}
	if b, err := json.Marshal(r); err != nil {
		t.Errorf("without a step: %v in %s", err, b)
	}

	c.Take(events(timed(1, 3, time.Second, 900*time.Millisecond)))
	r = complete(c, Report{}, Measured{})
	if s := r.StepMs; s.FirstStepExcluded || s.Steps != 1 || s.Mean != 1000 || s.ByBucket[3].Steps != 1 {
		t.Errorf("one step: %+v", s)
	}
	near(t, "steps_per_second", r.StepsPerSecond, 1)
	near(t, "input_stall_ratio", r.InputStallRatio, 0) // the first wait is the pipeline's start

	c.Take(events(timed(2, 3, 100*time.Millisecond, 50*time.Millisecond)))
	r = complete(c, Report{}, Measured{})
	if s := r.StepMs; s.Steps != 2 || s.Mean != 550 || s.ByBucket[3].Steps != 2 {
		t.Errorf("two steps: %+v", s)
	}
	near(t, "input_stall_ratio", r.InputStallRatio, 0.5)
	near(t, "steps_per_second", r.StepsPerSecond, 10)
}

func TestCollectorGoesOn(t *testing.T) {
	c := NewCollector(nil,
		Before{Steps: History{Steps: 100, Skipped: 1, Samples: 400, Frames: 9000, First: 5, Last: 2, Best: 0.01}})
	w := timed(101, 0, time.Second, 0)
	w.Metrics, w.Frames = nil, 10
	c.Take(events(w))
	w.Step, w.Loss, w.Skipped = 102, math.NaN(), true
	c.Take(events(w))
	r := complete(c, Report{}, Measured{})
	if r.Steps != 102 || r.ResumedAt != 100 || r.Samples != 408 || r.Frames != 9020 || r.SkippedSteps != 2 {
		t.Errorf("counts: %+v", r)
	}
	near(t, "loss.first", float64(r.Loss.First), 5)
	near(t, "loss.last", float64(r.Loss.Last), 10.0/101)
	near(t, "loss.best", float64(r.Loss.Best), 0.01)
	if r := complete(NewCollector(nil, Before{Steps: History{Steps: 7}}), Report{}, Measured{}); r.Steps != 7 {
		t.Errorf("resumed at its end: %d steps", r.Steps)
	}
}

func TestCollectorEvaluations(t *testing.T) {
	c := NewCollector([]string{"mel_loss"}, Before{})
	for i, loss := range []float64{3, 1, 2} {
		c.Take(events(&event.Evaluation{Step: int64(i+1) * 100, Loss: loss, Metrics: []float64{loss / 2}, Samples: 8}))
	}
	want := &Evaluation{
		Step: 300, Loss: 2, Metrics: map[string]Float{"mel_loss": 1}, Samples: 8, Best: Best{Step: 200, Loss: 1},
	}
	if r := complete(c, Report{}, Measured{}); !reflect.DeepEqual(r.Evaluation, want) {
		t.Errorf("got %+v, want %+v", r.Evaluation, want)
	}
	want.Best = Best{Step: 50, Loss: 0.5} // found before the run was resumed
	if r := complete(c, Report{}, Measured{Best: &Best{Step: 50, Loss: 0.5}}); !reflect.DeepEqual(r.Evaluation, want) {
		t.Errorf("got %+v, want %+v", r.Evaluation, want)
	}
}

func TestCollectorComparesWithBaselines(t *testing.T) {
	c := NewCollector([]string{"stop_loss", "mel_loss"}, Before{})
	for step := int64(1); step <= 30; step++ {
		w := timed(step, 0, time.Second, 0)
		w.Metrics = []float64{-1, float64(step)}
		w.Skipped = step == 30 // does not count
		c.Take(events(w))
	}
	c.Take(events(&event.Evaluation{Step: 30, Metrics: []float64{-1, 7}}))
	list := []BaselineLosses{{
		Train: PredictorLosses{Rows: 3, Constant: 40, PreviousFrame: 30},
		Eval:  PredictorLosses{Rows: 2, Constant: 28, PreviousFrame: 20},
	}}
	list[0].Metric, list[0].Target, list[0].Loss = "mel_loss", "mel_spectrograms", "huber"
	want := Baseline{
		Metric: "mel_loss", Target: "mel_spectrograms", Loss: "huber", Rows: 3, EvalRows: 2,
		Constant: 40, PreviousFrame: 30, TrainMeanLast20: 19.5, RatioTrain: 19.5 / 40, // steps 10 to 29
		EvalConstant: 28, EvalPreviousFrame: 20, Eval: 7, RatioEval: 0.25,
	}
	if got := complete(c, Report{}, Measured{Baselines: list}).Baselines; len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPhasesOfABatch(t *testing.T) {
	s := pipeline.Stats{Batches: 4, Exposed: 10 * time.Millisecond, Phases: []pipeline.Phase{
		{Name: "decode", Busy: 8 * time.Millisecond}, {Name: "target", Busy: 6 * time.Millisecond},
		{Name: "transfer", Busy: 40 * time.Millisecond}}}
	r := complete(NewCollector(nil, Before{}), Report{}, Measured{Pipeline: s})
	if want := (Phases{{"decode", 2}, {"target", 1.5}, {"transfer", 10}}); !reflect.DeepEqual(r.PhasesMs[:3], want) {
		t.Errorf("phases_ms %v, want %v", r.PhasesMs[:3], want)
	}
	for _, c := range []struct {
		exposed time.Duration
		want    float64
	}{{0, 1}, {10 * time.Millisecond, 0.75}, {40 * time.Millisecond, 0}} {
		s.Exposed = c.exposed
		near(t, "transfer_hidden_ratio", transferHidden(Measured{Pipeline: s}), c.want)
	}
	near(t, "transfer_hidden_ratio without transfers", transferHidden(Measured{}), 1)
}

func TestPhasesOnAGPU(t *testing.T) {
	c := NewCollector(nil, Before{})
	for step := int64(1); step <= 21; step++ {
		w := timed(step, 0, 100*time.Millisecond, 20*time.Millisecond)
		w.Metrics, w.GPUTrain, w.GPUOptimize = nil, 55*time.Millisecond, 2*time.Millisecond
		c.Take(events(w))
	}
	r := complete(c, Report{}, Measured{
		Transfers: Transfers{Batches: 20, Time: 80 * time.Millisecond, Hidden: 60 * time.Millisecond},
		Pipeline: pipeline.Stats{
			Batches: 21, Exposed: 3 * time.Second, Phases: []pipeline.Phase{{Name: "transfer", Busy: 5 * time.Second}},
		},
	})
	if want := (Phases{
		{"gpu_train", 55}, {"gpu_optimizer", 2}, {"gpu_transfer", 4},
	}); !reflect.DeepEqual(r.PhasesMs[5:], want) {
		t.Errorf("phases_ms %v, want %v at the end", r.PhasesMs, want)
	}
	near(t, "transfer_hidden_ratio", r.TransferHiddenRatio, 0.75)
	near(t, "gradients_ms", r.GradientsMs.Mean, 55) // the GPU's
	for _, want := range []string{
		"per step        wait 20.0 ms, train 60.0 ms, optimizer 10.0 ms, other 10.0 ms\n",
		"on the GPU      train 55.0 ms, optimizer 2.00 ms, transfer 4.00 ms\n",
	} {
		if text := r.Table("runs/x"); !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

// TestWarnings: the report has each warning once, and the table the last one.
func TestWarnings(t *testing.T) {
	var warnings Warnings
	for _, text := range []string{"slow", "silent", "slow"} {
		warnings.Add(text)
	}
	r := complete(NewCollector(nil, Before{}), Report{Warnings: warnings.List()}, Measured{})
	if want := []string{"slow", "silent"}; !slices.Equal(r.Warnings, want) {
		t.Errorf("%q, want %q", r.Warnings, want)
	}
	text := r.Table("run")
	if !strings.Contains(text, "  warnings        2, listed in report.json; the last one: silent\n") {
		t.Error(text)
	}
}

// complete returns a report that c has completed.
func complete(c *Collector, r Report, m Measured) *Report {
	c.Complete(&r, m)
	return &r
}
