package bottleneck

import (
	"cmp"
	"math"
	"slices"
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

// TestGains: what is predicted for times that were measured. A step trains for 20 ms.
func TestGains(t *testing.T) {
	run := func(wait float64, phases ...Phase) Measured {
		m := Measured{
			Steps: 100, Step: 20 + wait, Wait: wait, Limit: "decode", Queued: true, BucketVariation: -1, Phases: phases,
			Setup: Setup{
				NumWorkers: 2, BufferSize: 50, Slots: 3, Cores: 4,
				WorkersOf: map[string]int{"features": 1, "augment": 1},
				PluginOf:  map[string]string{"target": "features", "reference": "features", "noise": "augment"},
			},
		}
		return m
	}
	but := func(m Measured, change func(*Measured)) Measured { change(&m); return m }
	phase := func(name string, ms float64) Phase { return Phase{Name: name, Ms: ms} }
	type found struct {
		cause, change string
		gain          float64 // -1: unknown
	}
	for _, c := range []struct {
		name string
		m    Measured
		want []found
	}{
		{"decode", run(20, phase("decode", 80)), []found{{"decode", "num-workers=4", 1}}}, // of 4 cores
		{"decode, when cores are known to be idle",
			but(run(20, phase("decode", 80)), func(m *Measured) { m.Cores = 0.1 }),
			[]found{{"decode", "num-workers=5", 1}}},
		{"decode on all cores, which are idle",
			but(run(20, phase("decode", 80)), func(m *Measured) { m.Cores, m.Setup.Cores = 0.1, 2 }),
			[]found{{"decode", "num-workers=5", 1}}},
		{"decode on all cores, which are busy",
			but(run(20, phase("decode", 80)), func(m *Measured) { m.Cores, m.Setup.Cores = 0.99, 2 }),
			[]found{{"decode", "", 1/0.99 - 1}}},
		{"decode, then a stage", run(80, phase("decode", 200), phase("noise", 70)),
			[]found{
				{"decode", "num-workers=4", 3. / 7}, {"noise", "plugin-workers=augment=4", 0.4}, {"decode", "", 1.5},
			}},
		{"two stages of a plugin",
			but(run(40, phase("target", 20), phase("reference", 40)), func(m *Measured) { m.Limit = "target" }),
			[]found{{"target", "plugin-workers=features=4", 2}}},
		{"a process that has two batches at a time", but(run(20, Phase{"noise", 80, 2}),
			func(m *Measured) { m.Limit = "noise" }), []found{{"noise", "plugin-workers=augment=3", 1}}},
		{"a process that is not busy, and has two batches at a time",
			run(20, phase("decode", 80), Phase{"noise", 36, 2}), []found{{"decode", "num-workers=4", 1}}},
		{"transfer", but(run(20, phase("transfer", 40)), func(m *Measured) { m.Limit = "transfer" }),
			[]found{{"transfer", "", 1}}},
		{"a short ring", but(run(20, phase("decode", 60), phase("noise", 20)),
			func(m *Measured) { m.Setup.BufferSize, m.Queued, m.Steps = 2, false, 300 }),
			[]found{{"buffer", "buffer-size=50", 1. / 3}, {"decode", "num-workers=4", 0.5}}},
		{"times that vary", but(run(5, phase("decode", 10), phase("transfer", 5)),
			func(m *Measured) { m.Queued, m.Steps = false, 300 }), []found{{"slots", "slots=6", 0.25}}},
		{"files", but(run(0), func(m *Measured) { m.Other = 4 }), []found{{"train", "", -1}, {"other", "", 0.25}}},
		{"nothing", run(0.1, phase("decode", 30)), []found{{"train", "", -1}}},
	} {
		var got []found
		for _, f := range Diagnose(&c.m) {
			g := found{f.Cause, "", -1}
			if f.Change != nil {
				g.change = f.Change.Name + "=" + f.Change.Value
			}
			if f.Gain != nil {
				g.gain = math.Round(1e4**f.Gain) / 1e4
			}
			got = append(got, g)
		}
		for i := range c.want {
			c.want[i].gain = math.Round(1e4*c.want[i].gain) / 1e4
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestParts(t *testing.T) {
	m := Measured{Step: 40, Wait: 20, Cores: 0.25, Phases: []Phase{{Name: "decode", Ms: 60}, {Name: "noise", Ms: 90}},
		Setup: Setup{NumWorkers: 2, BufferSize: 10, PluginOf: map[string]string{"noise": "augment"}}}
	want := []Part{
		{"decode", 30, 0.75}, {"noise", 40, 1}, {"buffer", 15, 0.375}, {"cores", 10, 0.25}, {"train", 20, 0.5},
	}
	if got := Parts(&m); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestChecks(t *testing.T) {
	bad := Measured{Step: 100, Wait: 42, Exposed: 20, Other: 10, Variation: 0.31, BucketVariation: -1}
	good := Measured{Step: 100, Wait: 35, Exposed: 15, Other: 15, Variation: 0.5, BucketVariation: 0.3}
	if s := SharesOf(&bad); s != (Shares{Load: 0.22, Transfer: 0.2, Train: 0.48, Other: 0.1}) {
		t.Errorf("%+v", s)
	}
	var got []string
	for _, c := range append(Checks(&bad), Checks(&good)...) {
		got = append(got, c.String())
	}
	want := []string{
		"✗ data load 22.0 % (at most 20 %)", "✗ transfer 20.0 % (at most 15 %)", "✗ train 48.0 % (at least 50 %)",
		"✗ variation 31.0 % (at most 30 %)",
		"✓ data load 20.0 % (at most 20 %)", "✓ transfer 15.0 % (at most 15 %)",
		"✓ train 50.0 % (at least 50 %)", "✓ variation 30.0 % (at most 30 %)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s := SharesOf(&Measured{}); s != (Shares{}) {
		t.Errorf("%+v of no step", s)
	}
}

// TestShallowRing: batches queue for a stage of varying times, but none is slow in the mean, and the ring holds two
// batches: a longer ring is the advice, not more processes of a stage that is busy for a sixth of the time.
func TestShallowRing(t *testing.T) {
	m := Measured{
		Steps: 100, Step: 17.6, Wait: 7.4, Queued: true, Limit: "waveaug",
		Phases: []Phase{{"decode", 13.9, 2}, {"waveaug", 3.03, 1}, {"target", 1.09, 1}, {"transfer", 0.73, 1}},
		Setup: Setup{
			NumWorkers: 2, BufferSize: 2, Slots: 3, Cores: 16, SharedGPU: true,
			PluginOf:  map[string]string{"waveaug": "augment", "target": "features"},
			WorkersOf: map[string]int{"augment": 1, "features": 1},
		},
	}
	f := Diagnose(&m)[0]
	if f.Cause != Buffer || f.Change == nil || *f.Change != (Setting{"buffer-size", "50"}) || f.Gain == nil ||
		math.Abs(*f.Gain-7.4/10.2) > 1e-9 || !f.AtMost {
		t.Errorf("%+v", f)
	}
	m.Phases[1].Ms = 14 // it is the slowest part
	if f := Diagnose(&m)[0]; f.Cause != "waveaug" {
		t.Errorf("a slow stage: %+v", f)
	}
	m.Phases[1].Ms, m.Setup.BufferSize = 3.03, 50
	if f := Diagnose(&m)[0]; f.Cause != "waveaug" {
		t.Errorf("with a long ring: %+v", f)
	}
}
