package run

import (
	"context"
	"time"

	"github.com/xtts-host/xtts-host/host/speak/samples"
)

// openSamples opens what speaks at the evaluations.
func (r *run) openSamples(ctx context.Context) (err error) {
	p, s, threads := &r.loop.Train.Progress, r.session, r.plan.Threads()
	if r.plan.Config.Deterministic && !r.plan.OnGPU() {
		threads = 1 // recurrences may have other bits with more
	}
	c := samples.Config{
		Bundle: r.plan.Bundle, Weights: &s.Model.Evaluated, Tensors: s.Model.Evaluated.Tensors, Device: s.Device,
		MemoryLimit: s.Memory.Left(), Check: s.Memory.CheckSamples, Threads: threads,
		Run: r.dir, Step: p.Step, EvaluatedStep: p.EvaluatedStep, Stop: r.console.Stop,
		Log: r.log.Logger, Bus: r.bus,
		Spent: func(began, ended time.Time) { r.loop.Timeline.Trained("samples", nil, began, ended) },
	}
	if r.plan.World.Leads() && !r.mode.Measures() {
		c.List = r.plan.Samples
	}
	r.duties.samples, err = samples.Open(ctx, c)
	return err
}
