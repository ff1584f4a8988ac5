// Package loop runs the batch pipeline and the training loop together.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/trace"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Config has the parts that a Loop needs.
type Config struct {
	Plan    *plan.Plan
	Machine *machine.Machine
	Session *session.Session

	Source   *batch.Source // starts after Progress
	Input    batch.Input
	Run      event.Start // has been published; the zero value has no progress lines
	Progress train.Progress
	Stop     <-chan struct{}
	Ranks    *together.Ranks

	Duties     Duties
	Quarantine *batch.Quarantine
	Bus        *event.Bus
	Log        *slog.Logger

	// Without what follows, a loop does not measure the baselines, write debug files, or write a timeline.
	Baselines *report.Baselines
	Debug     *debug.Folder
	Trace     *trace.Writer
	// Copied gets every batch before it leaves the ring, on the copier's goroutine. Its error ends the run.
	Copied func(b *pipeline.Batch, layout *ring.Layout, slot []byte) error
}

// Loop is the batch pipeline with the training loop.
type Loop struct {
	Path     *batch.Path
	Train    *train.Loop
	Timeline *trace.Timeline // nil without a trace
	cfg      Config
	reporter *reporter
}

// Config returns the parts that the loop was made of.
func (l *Loop) Config() Config { return l.cfg }

// New creates the pipeline and the training loop. Nothing runs before Run.
func New(c Config) (*Loop, error) {
	p := c.Plan
	l := &Loop{cfg: c}
	l.Train = &train.Loop{
		Model: c.Session.Model, Optimizers: c.Session.Optimizers, Stop: c.Stop, Ranks: c.Ranks.Coordinator(),
		Progress: c.Progress, Delay: c.Input.Delays.Train,
		Policy: train.Policy{
			Schedules: p.Schedules(), EarlyStop: p.EarlyStop(), Counted: c.Source.Evaluated,
			MaxSkipped: p.Config.MaxSkipped,
		},
	}
	hooks := batch.Hooks{Tracer: l.draw, Decode: c.Input.Delays.Decode, Copy: c.Input.Delays.Transfer}
	if c.Baselines != nil || c.Debug != nil || c.Copied != nil {
		hooks.Copied = copied{c.Baselines, p.World.Alone(), c.Debug, c.Copied}.read
	}
	if c.Debug != nil {
		hooks.Copy = func() { c.Debug.Reach(debug.Point{Phase: "copy"}) }
	}
	var err error
	l.Path, err = batch.New(batch.Config{
		Source: c.Source, InputMode: c.Input.InputMode, Data: p.Data, BatchSize: p.Config.BatchSize,
		Depths: batch.Depths{
			Ring: p.Config.BufferSize, Device: p.Slots.Device, Workers: p.MostDecoders(), Prefetch: p.Ring.Prefetch,
		},
		Adaptive: l.adaptive(),
		Ring:     c.Machine.Ring, Layouts: p.Slots.Layouts, Inputs: p.Bundle.Manifest.Inputs,
		Scalars: p.Bundle.Manifest.Scalars, Stages: p.Stages.Resolved, Pools: c.Machine.Pools, Fed: p.Fed() > 1,
		Model: c.Session.Model, GPU: c.Session.Device.Context, Quarantine: c.Quarantine,
		Features: c.Machine.Features, Log: c.Log, Verify: p.Config.VerifyPlugins, OnRange: p.Config.AfterRange(),
		Contract: p.Bundle.Manifest.Features, Hooks: hooks,
	})
	if err != nil {
		return nil, err
	}
	c.Machine.OnDamage(l.Path.Damaged)
	l.reporter = newReporter(c, l)
	l.Train.Feed, l.Train.Observer, l.Train.Frames = l.Path.Feed, l.reporter, l.Path.Frames
	return l, nil
}

// adaptive returns what the pipeline changes during the run; nil without --adaptive. Each process on the data GPU has
// its share of the memory, so their number stays.
func (l *Loop) adaptive() *batch.Adaptive {
	p, a := l.cfg.Plan, l.cfg.Plan.Adaptive
	if a == nil {
		return nil
	}
	out := &batch.Adaptive{
		Slots: a.Slots, Decoders: p.Decoders(), Workers: a.Workers, Returns: a.Returns,
		Changed: func(e *event.Adapted) { l.cfg.Bus.Publish(e) },
	}
	for i := range p.Stages.Resolved.Plugins {
		out.Fixed = append(out.Fixed, !p.Placement.Data.OnCPU() && p.Stages.Resolved.UsesGPU(i))
	}
	return out
}

// draw makes pipeline and loop write a timeline if the run has one.
func (l *Loop) draw(pipe pipeline.Config) pipeline.Tracer {
	p, timer := l.cfg.Plan, l.cfg.Session.Device.Timer
	what := trace.Run{
		Workers: pipe.Workers, DeviceSlots: pipe.DeviceSlots, Steps: p.Config.TraceSteps, GPU: timer != nil,
	}
	for _, s := range pipe.Stages {
		what.Stages = append(what.Stages, s.Name)
	}
	for _, layout := range p.Slots.Layouts {
		what.Bytes = append(what.Bytes, layout.InputBytes)
	}
	t := trace.NewTimeline(l.cfg.Trace, what)
	if t == nil {
		return nil
	}
	l.Timeline, l.Train.Spent = t, t.Trained
	if timer != nil {
		timer.Spent = func(w train.Work, began, ended time.Time) {
			if w == train.Transferring {
				t.Copied(began, ended)
			} else {
				t.Computed(w.String(), began, ended)
			}
		}
	}
	return t
}

// Run runs pipeline and loop until one of them ends. After Run, no goroutine of them runs.
func (l *Loop) Run(ctx context.Context) error {
	pipeCtx, stopPipe := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Path.Pipeline.Run(pipeCtx) // Acquire returns its error
	}()
	filling := l.warmUp(ctx)
	l.cfg.Bus.Publish(
		&event.Phase{Phase: event.Training, At: time.Now(), Ready: l.Path.Pipeline.Finished(), Filling: filling})
	l.cfg.Machine.Watch.Start()
	err := l.Train.Run(ctx)
	l.reporter.evaluating.End()
	stopPipe()
	l.Path.Close()
	<-done
	if werr := l.cfg.Machine.Watch.Close(); werr != nil {
		l.cfg.Log.Warn(werr.Error()) // the timeline does not affect training
	}
	if errors.Is(err, exit.ErrInterrupted) && l.complete() {
		return nil
	}
	return err
}

// complete reports whether no step and no evaluation was left, so that an interruption came while the checkpoint of the
// last one was saved.
func (l *Loop) complete() bool {
	at, source := l.Train.Progress, *l.cfg.Source
	source.Start(at.Position()) // it has run ahead
	return source.Done() || l.Train.Policy.EarlyStop.Over(at.EarlyStop)
}

// warmUp lets the pipeline fill, until the prefetch target is ready or for --model-start-delay at most, and returns how
// long that took.
func (l *Loop) warmUp(ctx context.Context) time.Duration {
	began := time.Now()
	delay := time.NewTimer(time.Duration(l.cfg.Plan.Config.ModelStartDelay * float64(time.Second)))
	defer delay.Stop()
	l.cfg.Bus.Publish(&event.Phase{Phase: event.WarmingUp, At: began})
	l.fill(ctx, delay.C)
	return time.Since(began)
}

// fill waits until the prefetch target is ready, and publishes how far the pipeline is.
func (l *Loop) fill(ctx context.Context, late <-chan time.Time) {
	target := l.cfg.Plan.Ring.Prefetch
	job := l.cfg.Bus.Begin(event.Work{Task: event.Filling, Unit: "batches of the pipeline", Of: target})
	defer job.End()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			job.Do(min(target, l.Path.Pipeline.Finished()), target)
		case <-l.Path.Pipeline.Warm():
			return
		case <-late:
			return
		case <-l.cfg.Stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// EarlyStop returns why the run ended before its last step, if the validation loss was the reason.
func (l *Loop) EarlyStop() *event.EarlyStop {
	p, e := &l.Train.Progress, l.Train.Policy.EarlyStop
	if !e.Over(p.EarlyStop) {
		return nil
	}
	return &event.EarlyStop{
		Step: p.Step, Evaluations: p.EarlyStop.Evaluations, Best: p.EarlyStop.Best, Delta: e.Delta,
		By: l.cfg.Plan.BestBy(),
	}
}
