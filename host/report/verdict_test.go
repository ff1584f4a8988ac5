package report

import (
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/pipeline"
)

// TestJudge is the table of situations and the advice for each.
func TestJudge(t *testing.T) {
	setup := Setup{Threads: 2, NumWorkers: 4, BufferSize: 50, Slots: 3, Cores: 16, WorkersOf: map[string]int{"features": 2}}
	with := func(change func(*Setup)) Setup {
		s := setup
		change(&s)
		return s
	}
	const jitter = "Step time varies by 42 %, also within a bucket"
	for _, c := range []struct {
		name string
		s    symptoms
		want string
		says []string // in each piece of advice
		not  string   // in none
	}{
		{"the model", symptoms{stall: 0.019, bottleneck: "decode", queued: true, setup: setup}, "train", []string{"--batch-size"}, "--num-workers"},
		{"the model on a GPU", symptoms{setup: with(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 16 })},
			"train", []string{"A larger --batch-size trains more frames per second while memory lasts; 48, with --buffer-size 100, suit a GPU of 140.4 GiB."}, ""},
		{"the model on a GPU that is well used", symptoms{setup: with(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 48 })},
			"train", []string{"frames per second while memory lasts."}, "suit"},
		{"the model on a GPU that is full", symptoms{setup: with(func(s *Setup) { s.Card, s.BatchSize = 8<<30, 16 })},
			"train", []string{"is not the bottleneck"}, "larger --batch-size"},
		{"decode", symptoms{stall: 0.02, bottleneck: "decode", queued: true, setup: setup}, "decode", []string{"--num-workers (now 4)"}, ""},
		{"decode on all cores", symptoms{stall: 0.02, bottleneck: "decode", queued: true, setup: with(func(s *Setup) { s.Cores = 4 })},
			"decode", []string{"has all 4 cores"}, "--num-workers"},
		{"a stage", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features", setup: setup}, "target", []string{"--plugin-workers features=3 (now 2)"}, ""},
		{"a stage on all cores", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features", setup: with(func(s *Setup) { s.Cores = 2 })},
			"target", []string{"a process for each of the 2 cores"}, "--plugin-workers"},
		{"a stage on a GPU", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features",
			setup: with(func(s *Setup) { s.Cores, s.UsesGPU = 2, map[string]bool{"features": true} })}, "target", []string{"--plugin-workers features=3 (now 2)"}, ""},
		{"a stage of a pool that is not known", symptoms{stall: 0.5, bottleneck: "target", queued: true, plugin: "features"}, "target", []string{"--plugin-workers features=2."}, ""},
		{"an unknown stage", symptoms{stall: 0.5, bottleneck: "target", queued: true}, "target", []string{"--plugin-workers ID=N"}, ""},
		{"transfers", symptoms{stall: 0.5, bottleneck: "transfer", queued: true, setup: setup}, "transfer", []string{"--slots (now 3)"}, ""},
		{"transfers with all slots", symptoms{stall: 0.5, bottleneck: "transfer", queued: true, setup: with(func(s *Setup) { s.Slots = 8 })},
			"transfer", []string{"smaller --batch-size"}, "--slots"},
		{"too few batches", symptoms{stall: 0.5, bottleneck: "decode", setup: setup}, "decode", []string{"--buffer-size (now 50)"}, "--ring-memory"},
		{"too few batches in a full ring", symptoms{stall: 0.5, bottleneck: "decode", setup: with(func(s *Setup) { s.RingLimit = "--ring-memory 64MiB" })},
			"decode", []string{"--ring-memory 64MiB holds only 50 ring slots"}, "--buffer-size"},
		{"shared cores", symptoms{stall: 0.5, bottleneck: "decode", queued: true, setup: with(func(s *Setup) { s.OnCPU = true })},
			"decode", []string{"--num-workers", "--threads (now 2)"}, ""},
		{"all cores", symptoms{stall: 0.5, bottleneck: "decode", queued: true, setup: with(func(s *Setup) { s.OnCPU, s.Threads = true, 0 })},
			"decode", []string{"--num-workers", "(now all cores)"}, ""},
		{"buckets differ", symptoms{variation: 0.42, bucketVariation: 0.08}, "train", []string{"--batch-size", "--enable-static-shapes"}, "late"},
		{"jitter while batches are ready", symptoms{variation: 0.42, bucketVariation: 0.31}, "train", []string{"--batch-size", jitter}, "late"},
		{"jitter of batches", symptoms{stall: 0.2, bottleneck: "decode", queued: true, variation: 0.42, bucketVariation: 0.31, setup: setup},
			"decode", []string{"--num-workers", jitter + ": batches come late"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.steps = 100
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
	if v := judge(symptoms{steps: 1, stall: 0.5, bottleneck: "decode"}); v.Bottleneck != "unknown" || len(v.Advice) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestDiagnose(t *testing.T) {
	r := &Report{InputStallRatio: 0.5}
	r.StepMs.Steps, r.StepMs.Variation = 100, 0.4
	r.StepMs.ByBucket = map[int]Distribution{0: {Variation: 0.1}, 1: {Variation: 0.2}}
	stats := pipeline.Stats{Phases: []pipeline.Phase{{Name: "decode", Busy: 10 * time.Second}, {Name: "target", Busy: 5 * time.Second, Queue: time.Second}}}
	s := diagnose(r, stats, Setup{PluginOf: map[string]string{"target": "features"}})
	if s.steps != 100 || s.stall != 0.5 || s.variation != 0.4 || s.bucketVariation != 0.2 || s.bottleneck != "target" || !s.queued || s.plugin != "features" {
		t.Errorf("got %+v", s)
	}
	stats.Phases[1].Queue = 400 * time.Millisecond // less than a tenth of the work
	if s := diagnose(r, stats, Setup{}); s.queued || s.plugin != "" {
		t.Errorf("got %+v", s)
	}
}
