package bottleneck

import (
	"math"
	"strings"
	"testing"
)

func TestSecond(t *testing.T) {
	onGPU := Setup{
		NumWorkers: 2, PluginOf: map[string]string{"target": "features", "reference": "features"},
		WorkersOf: map[string]int{"features": 4}, UsesGPU: map[string]bool{"features": true},
	}
	sharing, noKernels := onGPU, onGPU
	sharing.WorkersOf, sharing.SharedGPU = map[string]int{"features": 1}, true
	noKernels.UsesGPU = nil
	apart, cpu := onGPU, onGPU
	apart.DataGPU = true
	cpu.OnCPU = true
	// step is a run whose steps take 60 ms, of which it waits, and whose batches take so long.
	step := func(wait, decode, target, transfer float64) *Measured {
		return &Measured{Steps: 100, Step: 60, Wait: wait, Phases: []Phase{
			{Name: "decode", Ms: decode}, {Name: "target", Ms: target}, {Name: "reference", Ms: 4},
			{Name: "transfer", Ms: transfer},
		}}
	}
	together := step(0, 20, 36, 1) // a process has four calls at a time
	together.Phases[1].Parallel = 4
	short := step(0, 20, 8, 1)
	short.Steps = 1
	for _, c := range []struct {
		name   string
		m      *Measured
		setup  Setup
		want   float64 // 0: nothing is said
		reason string
	}{
		{"never waits", step(0, 20, 44, 1), onGPU, 1, "the pipeline waits 0.0 % of the time for data; plugins on the " +
			"CPU need 12.0 ms per step, training needs 60.0 ms"},
		{
			"waits for plugins", step(30, 20, 236, 1), onGPU, 2,
			"waits 50 % of the time for data; plugins on the CPU need 60.0 ms per step",
		},
		{"waits for plugins that know no GPU", step(30, 20, 236, 1), noKernels, 1, "60.0 ms per step"},
		{"waits for decoding", step(30, 120, 8, 1), onGPU, 1, "60.0 ms per step"},
		{
			"decoding would be next", step(30, 80, 8, 1), onGPU, 1.5,
			"then the steps before training would limit it, with 40.0 ms",
		},
		{"copies would be next", step(30, 8, 8, 50), onGPU, 1.2, "with 50.0 ms"},
		{
			"shares the GPU", step(0, 20, 16, 1), sharing, 1.5,
			"0.0 % of the time for data; the stages that share the GPU take 20.0 ms for a step of 60.0 ms",
		},
		{"is shared more than half", step(0, 20, 36, 1), sharing, 1.5, "with 40.0 ms"},
		{"shares it for several batches at a time", together, sharing, 3, "take 40.0 ms for a step of 60.0 ms"},
		{"a data GPU", step(0, 20, 8, 1), apart, 0, ""},
		{"the CPU", step(0, 20, 8, 1), cpu, 0, ""},
		{"one step", short, onGPU, 0, ""},
	} {
		c.m.Setup = c.setup
		got := Second(c.m)
		switch {
		case (got == nil) != (c.want == 0):
			t.Errorf("%s: %+v", c.name, got)
		case got != nil && (math.Abs(got.Times-c.want) > 1e-9 || !strings.Contains(got.Reason, c.reason)):
			t.Errorf("%s: %+v, want %g, %s", c.name, got, c.want, c.reason)
		}
	}
}
