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

// TestPluginsUseTheCPU: the use of the CPU has the time of the plugins, that of a GPU does not.
func TestPluginsUseTheCPU(t *testing.T) {
	cores := float64(runtime.NumCPU())
	r := Report{
		Utilization: []Utilization{{Device: "cpu", Role: "data", Mean: 0.25}, {Device: "GPU 0", Mean: 0.5}},
		Plugins:     []Plugin{{ID: "augment", CPUS: cores}, {ID: "features", CPUS: 2 * cores}},
	}
	NewCollector(nil, Before{}).Complete(&r, Measured{Wall: 12 * time.Second})
	if cpu, gpu := r.Utilization[0].Mean, r.Utilization[1].Mean; math.Abs(cpu-0.5) > 1e-9 || gpu != 0.5 {
		t.Errorf("CPU %g, GPU %g", cpu, gpu)
	}
}

// TestCores: the cores' time is that of this process and its plugins while it trains.
func TestCores(t *testing.T) {
	c, r, began := NewCollector(nil, Before{}), &Report{}, time.Now()
	taken := cpuTimes{own: 7 * time.Second, all: time.Hour, at: 4}
	c.cpu = func() cpuTimes { return taken }
	if own, others := c.cores(r); own != 0 || others != 0 {
		t.Errorf("%g, %g before training", own, others)
	}
	c.Take(events(&event.Phase{Phase: event.Training, At: began}))
	taken.own, taken.all = taken.own+3*time.Second, taken.all+17*time.Second
	c.Take(events(&event.Phase{Phase: event.Ending, At: began.Add(10 * time.Second)}))
	r.Plugins = []Plugin{{CPUS: 0.5}, {CPUS: 1.5}}
	own, others := c.cores(r)
	if want := min(1, 0.5/float64(runtime.GOMAXPROCS(0))); math.Abs(own-want) > 1e-9 || math.Abs(others-0.3) > 1e-9 {
		t.Errorf("%g and %g, want %g and 0.3", own, others, want)
	}
	r.Process = &Process{Of: 2}
	if _, others := c.cores(r); others != 0 {
		t.Errorf("%g of others beside another rank", others)
	}
}

// TestBusyCores: the times of the cores that the process may use are added up, but for those in which they were idle or
// waited for a disk.
func TestBusyCores(t *testing.T) {
	const text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 10 20 5000 300 1 2 3 50 60\ncpu1 7 7 7 7 7 7 7 7 7 7\n" +
		"cpu2 200 0 0 1 1 0 0 0 0 0\nintr 5 6\n"
	busy, cores := busyCores(text, func(core int) bool { return core != 1 })
	if busy != 3360*time.Millisecond || cores != 2 {
		t.Errorf("%v of %d cores", busy, cores)
	}
	before := cpuTime()
	if before.own <= 0 || before.all <= before.own || before.at < 1 {
		t.Errorf("%+v", before)
	}
}
