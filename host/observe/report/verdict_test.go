package report

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// situation is what was measured, and the verdict on it.
type situation struct {
	name string
	s    symptoms
	want string
	says []string // in each piece of advice
	not  string   // in none
}

// usual is the setup of a machine with a GPU.
var usual = Setup{
	Threads: 2, NumWorkers: 4, BufferSize: 50, Slots: 3, Cores: 16, WorkersOf: map[string]int{"features": 2},
}

func changed(change func(*Setup)) Setup {
	s := usual
	change(&s)
	return s
}

const jitter = "Step time varies by 42 %, also within a bucket"

// situations is the table of situations and the advice for each.
var situations = []situation{
	{
		"the model", symptoms{stall: 0.019, bottleneck: "decode", queued: true, setup: usual}, "train",
		[]string{"--batch-size"}, "--num-workers",
	},
	{"the model on a GPU", symptoms{setup: changed(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 16 })},
		"train",
		[]string{
			"A larger --batch-size trains more frames per second while memory lasts; 48, with --buffer-size 100, " +
				"suit a GPU of 140.4 GiB.",
		},
		""},
	{
		"the model on a GPU that is well used",
		symptoms{setup: changed(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 48 })}, "train",
		[]string{"frames per second while memory lasts."}, "suit",
	},
	{"the model on a GPU that is full", symptoms{setup: changed(func(s *Setup) { s.Card, s.BatchSize = 8<<30, 16 })},
		"train", []string{"is not the bottleneck"}, "larger --batch-size"},
	{
		"decode", symptoms{stall: 0.02, bottleneck: "decode", queued: true, setup: usual}, "decode",
		[]string{"--num-workers (now 4)"}, "",
	},
	{
		"decode on all cores",
		symptoms{stall: 0.02, bottleneck: "decode", queued: true, setup: changed(func(s *Setup) { s.Cores = 4 })},
		"decode", []string{"a worker for each core (4)"}, "--num-workers",
	},
	{
		"a stage", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features", setup: usual}, "target",
		[]string{"--plugin-workers features=3 (now 2)"}, "",
	},
	{
		"a stage on all cores",
		symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features", setup: changed(
			func(s *Setup) { s.Cores = 2 })},
		"target", []string{"a process for each core (2)"}, "--plugin-workers",
	},
	{"a stage on a GPU", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features",
		setup: changed(func(s *Setup) { s.Cores, s.UsesGPU, s.DataGPU = 2, map[string]bool{"features": true}, true })},
		"target", []string{"--plugin-workers features=3 (now 2)"}, ""},
	{"a stage for a GPU on all cores", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features",
		setup: changed(func(s *Setup) { s.Cores, s.UsesGPU = 2, map[string]bool{"features": true} })}, "target",
		[]string{"a process for each core (2)"}, "--plugin-workers"},
	{
		"a slow disk",
		symptoms{stall: 0.6, bottleneck: "decode", queued: true, setup: changed(func(s *Setup) { s.NumWorkers = 16 })},
		"decode", []string{"on a local disk"}, "--num-workers",
	},
	{"one core", symptoms{stall: 0.5, bottleneck: "decode", queued: true, setup: Setup{
		OnCPU: true, Cores: 1, NumWorkers: 2, BufferSize: 50,
	}}, "decode", []string{
		"a worker for each core (1)", "share one core",
	}, "--"},
	{"one core, a stage", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features", setup: Setup{
		OnCPU: true, Threads: 1, Cores: 1, BufferSize: 50, WorkersOf: map[string]int{"features": 1},
	}}, "target", []string{
		"a process for each core (1)", "share one core",
	}, "--"},
	{
		"a few steps on a tiny data set", symptoms{steps: 6, stall: 0.5, bottleneck: "decode", setup: usual}, "decode",
		[]string{"of 6 steps is too short"}, "--buffer-size",
	},
	{
		"a few steps with a small buffer",
		symptoms{steps: 6, stall: 0.5, bottleneck: "decode", setup: changed(func(s *Setup) { s.BufferSize = 2 })},
		"decode", []string{"--buffer-size (now 2)"}, "",
	},
	{
		"the CPU", symptoms{setup: Setup{OnCPU: true, Threads: 16, Cores: 16, BatchSize: 16}}, "train",
		[]string{"A GPU, or a machine with more cores"}, "--",
	},
	{
		"the CPU, a small batch", symptoms{setup: Setup{OnCPU: true, Threads: 16, Cores: 16, BatchSize: 4}}, "train",
		[]string{"A larger --batch-size"}, "suit",
	},
	{
		"the CPU, few threads", symptoms{setup: Setup{OnCPU: true, Threads: 2, Cores: 16, BatchSize: 16}}, "train",
		[]string{"More --threads (now 2) use more of the 16 cores"}, "--batch-size",
	},
	{"jitter of shared cores", symptoms{
		variation: 0.42, bucketVariation: 0.31, setup: Setup{OnCPU: true, Threads: 2, Cores: 2, BatchSize: 16},
	}, "train", []string{
		"A GPU", jitter + ", although batches are ready: the pipeline works on the cores that train",
	}, "late"},
	{
		"a stage of a pool that is not known",
		symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features"}, "target",
		[]string{"--plugin-workers features=2."}, "",
	},
	{
		"an unknown stage", symptoms{stall: 0.5, bottleneck: "target", queued: true}, "target",
		[]string{"--plugin-workers ID=N"}, "",
	},
	{
		"transfers", symptoms{stall: 0.5, bottleneck: "transfer", queued: true, setup: usual}, "transfer",
		[]string{"--slots (now 3)"}, "",
	},
	{
		"transfers with all slots",
		symptoms{stall: 0.5, bottleneck: "transfer", queued: true, setup: changed(func(s *Setup) { s.Slots = 8 })},
		"transfer", []string{"smaller --batch-size"}, "--slots",
	},
	{
		"too few batches", symptoms{stall: 0.5, bottleneck: "decode", setup: usual}, "decode",
		[]string{"--buffer-size (now 50)"}, "--ring-memory",
	},
	{
		"too few batches in a full ring",
		symptoms{stall: 0.5, bottleneck: "decode", setup: changed(
			func(s *Setup) { s.RingLimit = "--ring-memory 64MiB" })},
		"decode", []string{"--ring-memory 64MiB holds only 50 ring slots"}, "--buffer-size",
	},
	{
		"shared cores",
		symptoms{stall: 0.5, bottleneck: "decode", queued: true, setup: changed(func(s *Setup) { s.OnCPU = true })},
		"decode", []string{"--num-workers", "--threads (now 2)"}, "",
	},
	{"all cores", symptoms{stall: 0.5, bottleneck: "decode", queued: true, setup: changed(
		func(s *Setup) { s.OnCPU, s.Threads = true, 0 })}, "decode", []string{
		"--num-workers", "(now all cores)",
	}, ""},
	{
		"buckets differ", symptoms{variation: 0.42, bucketVariation: 0.08}, "train",
		[]string{"--batch-size", "--enable-static-shapes"}, "late",
	},
	{
		"jitter while batches are ready", symptoms{variation: 0.42, bucketVariation: 0.31}, "train",
		[]string{"--batch-size", jitter}, "late",
	},
	{"each bucket once", symptoms{variation: 1.08, bucketVariation: -1}, "train", []string{"--batch-size"}, "varies"},
	{
		"jitter of batches",
		symptoms{stall: 0.2, bottleneck: "decode", queued: true, variation: 0.42, bucketVariation: 0.31, setup: usual},
		"decode", []string{"--num-workers", jitter + ": batches come late"}, "",
	},
}

func TestAdviceFollowsFigures(t *testing.T) {
	for _, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			c.s.steps = cmp.Or(c.s.steps, 100)
			v := judge(c.s)
			if v.Bottleneck != c.want {
				t.Errorf("bottleneck %q, want %q", v.Bottleneck, c.want)
			}
			if len(v.Advice) != len(c.says) {
				t.Fatalf("advice %q, want %d pieces", v.Advice, len(c.says))
			}
			for i, say := range c.says {
				if !strings.Contains(v.Advice[i], say) {
					t.Errorf("advice %q, want %q in it", v.Advice[i], say)
				}
				if c.not != "" && strings.Contains(v.Advice[i], c.not) {
					t.Errorf("advice %q, want no %q in it", v.Advice[i], c.not)
				}
			}
		})
	}
}

func TestJudgeKnowsNothingAfterOneStep(t *testing.T) {
	v := judge(symptoms{steps: 1, stall: 0.5, bottleneck: "decode"})
	if v.Bottleneck != "unknown" || len(v.Advice) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestDiagnose(t *testing.T) {
	r := &Report{InputStallRatio: 0.5}
	r.StepMs.Steps, r.StepMs.Variation = 100, 0.4
	r.StepMs.ByBucket = map[int]Distribution{
		0: {Steps: 50, Variation: 0.1}, 1: {Steps: 49, Variation: 0.2}, 2: {Steps: 1},
	}
	stats := pipeline.Stats{Phases: []pipeline.Phase{
		{Name: "decode", Busy: 10 * time.Second}, {Name: "target", Busy: 5 * time.Second, Queue: time.Second},
	}}
	s := diagnose(r, stats, Setup{PluginOf: map[string]string{"target": "features"}})
	if s.steps != 100 || s.stall != 0.5 || s.variation != 0.4 || s.bucketVariation != 0.2 || s.bottleneck != "target" ||
		!s.queued || s.plugin != "features" {
		t.Errorf("got %+v", s)
	}
	// which says nothing about steps of one bucket
	r.StepMs.ByBucket = map[int]Distribution{0: {Steps: 1}, 1: {Steps: 1}}
	if s := diagnose(r, stats, Setup{}); s.bucketVariation != -1 {
		t.Errorf("got %+v", s)
	}
	stats.Phases[1].Queue = 400 * time.Millisecond // less than a tenth of the work
	if s := diagnose(r, stats, Setup{}); s.queued || s.plugin != "" {
		t.Errorf("got %+v", s)
	}
}
