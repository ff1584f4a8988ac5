package bottleneck

import (
	"cmp"
	"strings"
	"testing"
)

// situation is what was measured, and the verdict on it.
type situation struct {
	name string
	s    Measured
	want string
	says []string // in each piece of advice
	not  string   // in none
}

// usual is the setup of a machine with a GPU.
var usual = Setup{
	Threads: 2, NumWorkers: 4, BufferSize: 50, Slots: 3, Cores: 16, WorkersOf: map[string]int{"features": 2},
	PluginOf: map[string]string{"target": "features"},
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
		"the model", Measured{Wait: 1.9, Limit: "decode", Queued: true, Setup: usual}, "train",
		[]string{"--batch-size"}, "--num-workers",
	},
	{"the model on a GPU", Measured{Setup: changed(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 16 })},
		"train",
		[]string{
			"A larger --batch-size trains more frames per second while memory lasts; 48, with --buffer-size 100, " +
				"suit a GPU of 140.4 GiB.",
		},
		""},
	{
		"the model on a GPU that is well used",
		Measured{Setup: changed(func(s *Setup) { s.Card, s.BatchSize = 143771<<20, 48 })}, "train",
		[]string{"frames per second while memory lasts."}, "suit",
	},
	{"the model on a GPU that is full", Measured{Setup: changed(func(s *Setup) { s.Card, s.BatchSize = 8<<30, 16 })},
		"train", []string{"is not the bottleneck"}, "larger --batch-size"},
	{
		"decode", Measured{Wait: 2, Limit: "decode", Queued: true, Setup: usual}, "decode",
		[]string{"--num-workers (now 4)"}, "",
	},
	{
		"decode on all cores",
		Measured{Wait: 2, Limit: "decode", Queued: true, Setup: changed(func(s *Setup) { s.Cores = 4 })},
		"decode", []string{"a worker for each core (4)"}, "--num-workers",
	},
	{
		"a stage", Measured{Wait: 50, Limit: "target", Queued: true, Setup: usual}, "target",
		[]string{"--plugin-workers features=3 (now 2)"}, "",
	},
	{
		"a stage on all cores",
		Measured{Wait: 50, Limit: "target", Queued: true, Setup: changed(
			func(s *Setup) { s.Cores = 2 })},
		"target", []string{"a process for each core (2)"}, "--plugin-workers",
	},
	{"a stage on a GPU", Measured{Wait: 50, Limit: "target", Queued: true,
		Setup: changed(func(s *Setup) { s.Cores, s.UsesGPU, s.DataGPU = 2, map[string]bool{"features": true}, true })},
		"target", []string{"--plugin-workers features=3 (now 2)"}, ""},
	{"a stage for a GPU on all cores", Measured{Wait: 50, Limit: "target", Queued: true,
		Setup: changed(func(s *Setup) { s.Cores, s.UsesGPU = 2, map[string]bool{"features": true} })}, "target",
		[]string{"a process for each core (2)"}, "--plugin-workers"},
	{
		"a slow disk",
		Measured{Wait: 60, Limit: "decode", Queued: true, Setup: changed(func(s *Setup) { s.NumWorkers = 16 })},
		"decode", []string{"on a local disk"}, "--num-workers",
	},
	{"one core", Measured{Wait: 50, Limit: "decode", Queued: true, Setup: Setup{
		OnCPU: true, Cores: 1, NumWorkers: 2, BufferSize: 50,
	}}, "decode", []string{
		"a worker for each core (1)", "share one core",
	}, "--"},
	{"one core, a stage", Measured{Wait: 50, Limit: "target", Queued: true, Setup: Setup{
		OnCPU: true, Threads: 1, Cores: 1, BufferSize: 50, WorkersOf: map[string]int{"features": 1},
		PluginOf: usual.PluginOf,
	}}, "target", []string{
		"a process for each core (1)", "share one core",
	}, "--"},
	{
		"a few steps on a tiny data set", Measured{Steps: 6, Wait: 50, Limit: "decode", Setup: usual}, "decode",
		[]string{"of 6 steps is too short"}, "--buffer-size",
	},
	{
		"a few steps with a small buffer",
		Measured{Steps: 6, Wait: 50, Limit: "decode", Setup: changed(func(s *Setup) { s.BufferSize = 2 })},
		"decode", []string{"--buffer-size (now 2)"}, "",
	},
	{
		"the CPU", Measured{Setup: Setup{OnCPU: true, Threads: 16, Cores: 16, BatchSize: 16}}, "train",
		[]string{"A GPU, or a machine with more cores"}, "--",
	},
	{
		"the CPU, a small batch", Measured{Setup: Setup{OnCPU: true, Threads: 16, Cores: 16, BatchSize: 4}}, "train",
		[]string{"A larger --batch-size"}, "suit",
	},
	{
		"the CPU, few threads", Measured{Setup: Setup{OnCPU: true, Threads: 2, Cores: 16, BatchSize: 16}}, "train",
		[]string{"More --threads (now 2) use more of the 16 cores"}, "--batch-size",
	},
	{"jitter of shared cores", Measured{
		Variation: 0.42, BucketVariation: 0.31, Setup: Setup{OnCPU: true, Threads: 2, Cores: 2, BatchSize: 16},
	}, "train", []string{
		"A GPU", jitter + ", although batches are ready: the pipeline works on the cores that train",
	}, "late"},
	{
		"a stage of a pool that is not known",
		Measured{Wait: 50, Limit: "target", Queued: true, Setup: Setup{PluginOf: usual.PluginOf}}, "target",
		[]string{"--plugin-workers features=2."}, "",
	},
	{
		"an unknown stage", Measured{Wait: 50, Limit: "target", Queued: true}, "target",
		[]string{"--plugin-workers ID=N"}, "",
	},
	{
		"transfers", Measured{Wait: 50, Limit: "transfer", Queued: true, Setup: usual}, "transfer",
		[]string{"--slots (now 3)"}, "",
	},
	{
		"transfers with all slots",
		Measured{Wait: 50, Limit: "transfer", Queued: true, Setup: changed(func(s *Setup) { s.Slots = 8 })},
		"transfer", []string{"smaller --batch-size"}, "--slots",
	},
	{
		"too few batches", Measured{Wait: 50, Limit: "decode", Setup: usual}, "decode",
		[]string{"--buffer-size (now 50)"}, "--ring-memory",
	},
	{
		"too few batches in a full ring",
		Measured{Wait: 50, Limit: "decode", Setup: changed(
			func(s *Setup) { s.RingLimit = "--ring-memory 64MiB" })},
		"decode", []string{"--ring-memory 64MiB holds only 50 ring slots"}, "--buffer-size",
	},
	{
		"shared cores",
		Measured{Wait: 50, Limit: "decode", Queued: true, Setup: changed(func(s *Setup) { s.OnCPU = true })},
		"decode", []string{"--num-workers", "--threads (now 2)"}, "",
	},
	{"all cores", Measured{Wait: 50, Limit: "decode", Queued: true, Setup: changed(
		func(s *Setup) { s.OnCPU, s.Threads = true, 0 })}, "decode", []string{
		"--num-workers", "(now all cores)",
	}, ""},
	{
		"buckets differ", Measured{Variation: 0.42, BucketVariation: 0.08}, "train",
		[]string{"--batch-size", "--enable-static-shapes"}, "late",
	},
	{
		"jitter while batches are ready", Measured{Variation: 0.42, BucketVariation: 0.31}, "train",
		[]string{"--batch-size", jitter}, "late",
	},
	{"each bucket once", Measured{Variation: 1.08, BucketVariation: -1}, "train", []string{"--batch-size"}, "varies"},
	{
		"jitter of batches",
		Measured{Wait: 20, Limit: "decode", Queued: true, Variation: 0.42, BucketVariation: 0.31, Setup: usual},
		"decode", []string{"--num-workers", jitter + ": batches come late"}, "",
	},
}

func TestAdviceFollowsFigures(t *testing.T) {
	for _, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			c.s.Steps, c.s.Step = cmp.Or(c.s.Steps, 100), 100
			if got := Limit(&c.s); got != c.want {
				t.Errorf("limited by %q, want %q", got, c.want)
			}
			advice := Texts(Diagnose(&c.s))
			if len(advice) != len(c.says) {
				t.Fatalf("advice %q, want %d pieces", advice, len(c.says))
			}
			for i, say := range c.says {
				if !strings.Contains(advice[i], say) {
					t.Errorf("advice %q, want %q in it", advice[i], say)
				}
				if c.not != "" && strings.Contains(advice[i], c.not) {
					t.Errorf("advice %q, want no %q in it", advice[i], c.not)
				}
			}
		})
	}
}
