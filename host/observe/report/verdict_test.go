package report

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

func TestJudgeKnowsNothingAfterOneStep(t *testing.T) {
	v := judge(&bottleneck.Measured{Steps: 1, Wait: 50, Limit: "decode"}, 0, 1)
	if v.Bottleneck != "unknown" || len(v.Advice) != 0 || len(v.Checks) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestSpeedOf(t *testing.T) {
	r := &Report{InputStallRatio: 0.5, Accumulation: Accumulation{MicroBatches: 2}, PhasesMs: Phases{{"other", 3}}}
	r.StepMs.Steps, r.StepMs.Mean, r.StepMs.Variation = 100, 80, 0.4
	r.StepMs.ByBucket = map[int]Distribution{
		0: {Steps: 50, Variation: 0.1}, 1: {Steps: 49, Variation: 0.2}, 2: {Steps: 1},
	}
	stats := pipeline.Stats{
		Batches: 200, Wait: 4 * time.Second, Exposed: time.Second, Phases: []pipeline.Phase{
			{Name: "decode", Busy: 10 * time.Second}, {Name: "target", Busy: 5 * time.Second, Queue: time.Second},
		},
	}
	s := speedOf(r, stats, bottleneck.Setup{})
	if s.Steps != 100 || s.Step != 80 || s.Wait != 40 || s.Exposed != 10 || s.Other != 3 || s.Variation != 0.4 ||
		s.BucketVariation != 0.2 || s.Limit != "target" || !s.Queued || s.Phases[1].Ms != 50 {
		t.Errorf("got %+v", s)
	}
	// which says nothing about steps of one bucket
	r.StepMs.ByBucket = map[int]Distribution{0: {Steps: 1}, 1: {Steps: 1}}
	if s := speedOf(r, stats, bottleneck.Setup{}); s.BucketVariation != -1 {
		t.Errorf("got %+v", s)
	}
	stats.Phases[1].Queue = 400 * time.Millisecond // less than a tenth of the work
	if s := speedOf(r, stats, bottleneck.Setup{}); s.Queued {
		t.Errorf("got %+v", s)
	}
}

// TestCores: the cores' time is that of this process and its plugins while it trains.
func TestCores(t *testing.T) {
	c, r, began, taken := NewCollector(nil, Before{}), &Report{}, time.Now(), 7*time.Second
	c.cpu = func() time.Duration { return taken }
	if got := c.cores(r); got != 0 {
		t.Errorf("%g before training", got)
	}
	c.Take(events(&event.Phase{Phase: event.Training, At: began}))
	taken += 3 * time.Second
	c.Take(events(&event.Phase{Phase: event.Ending, At: began.Add(10 * time.Second)}))
	r.Plugins = []Plugin{{CPUS: 0.5}, {CPUS: 1.5}}
	if got, want := c.cores(r), min(1, 0.5/float64(runtime.GOMAXPROCS(0))); math.Abs(got-want) > 1e-9 {
		t.Errorf("%g, want %g", got, want)
	}
}
