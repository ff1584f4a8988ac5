package run

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/ending"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// observer publishes the events of the training loop, and saves checkpoints between steps.
type observer struct {
	run        *run
	saver      *save.Saver
	ledger     *report.Ledger
	collector  *report.Collector
	baselines  *report.Baselines
	divergence report.Divergence
	quarantine *batch.Quarantine

	first           int64 // step of this process
	reductions      []int // of the learning rates of the players that were reported
	stepFrames      int   // of the step so far
	samples, frames int64 // trained on, also before a resume
}

// newObserver opens the files of the run folder and adds the run's sinks.
func newObserver(r *run, p train.Progress, state *checkpoint.State) (_ *observer, err error) {
	o := &observer{run: r, first: p.Step + 1, reductions: make([]int, len(r.plan.Players))}
	for i, plateau := range p.Plateaus {
		o.reductions[i] = plateau.Reductions
	}
	if err = errors.Join(r.plan.Data.WriteExcluded(r.dir), r.plan.Data.WriteNames(r.dir)); err != nil {
		return nil, err
	}
	if o.quarantine, err = batch.OpenQuarantine(filepath.Join(r.dir, report.QuarantineFile), r.plan.Data, r.plan.Config.MaxQuarantine, r.wait, r.log.Warn); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.quarantine.Close()
		}
	}()
	if state != nil {
		o.quarantine.Restore(state.Reasons(), r.plan.Data.Train)
		o.samples, o.frames = state.Samples, state.Frames
	}
	if o.baselines, err = report.NewBaselines(r.plan.Bundle.Manifest.Baselines, r.plan.Bundle.Manifest.Inputs); err != nil {
		return nil, err
	}
	evaluation, err := o.addSinks(p)
	if err != nil {
		return nil, err
	}
	o.saver = newSaver(r, o.divergence.Steady())
	if evaluation != nil && evaluation.Step == p.Step && o.divergence.Steady() == p.Step {
		o.shows(float64(evaluation.Loss), p.Step, p.Best)
	}
	r.bus.Publish(&event.Start{ // the error of a sink ends the run at its first step
		Dir: r.dir, Bundle: r.plan.Bundle.Manifest.Name, Device: r.plan.Record().Device(), Metrics: r.plan.Bundle.Manifest.Metrics(),
		Step: p.Step, Total: r.source.Total(),
	})
	return o, nil
}

// addSinks adds the sinks of the run's events, except the console. The bus closes them. It returns the last evaluation
// of a resumed run.
func (o *observer) addSinks(p train.Progress) (*report.Evaluation, error) {
	r, names := o.run, o.run.plan.Bundle.Manifest.Metrics()
	metrics, err := report.OpenMetrics(filepath.Join(r.dir, report.MetricsFile), names, p.Step, r.wait)
	if err != nil {
		return nil, err
	}
	o.divergence = metrics.Divergence()
	if !r.plan.Start.Change.Comparable() {
		o.divergence.Forget()
	}
	r.bus.RequireFile(report.MetricsFile, metrics)
	evaluations, err := report.OpenEvaluations(filepath.Join(r.dir, report.EvalFile), names, p.EvaluatedStep, r.wait)
	if err != nil {
		return nil, err
	}
	r.bus.RequireFile(report.EvalFile, evaluations)
	if o.ledger, err = report.OpenLedger(r.debug.Ledger(), p.Step, r.wait); err != nil {
		return nil, err
	}
	if o.ledger != nil {
		r.bus.RequireFile("ledger", o.ledger)
	}
	before := report.Before{Steps: metrics.History(), Recent: metrics.Recent(), Evaluation: evaluations.Last(), Warm: r.mode.Warm()}
	if p.Step > 0 { // a report that cannot be read is written again, without its figures
		if r, err := report.Read(filepath.Join(r.dir, report.ReportFile)); err == nil {
			before.Baselines = r.Baselines
		}
	}
	o.collector = report.NewCollector(names, before)
	r.bus.Require(report.ReportFile, o.collector)
	if r.machine.Watch != nil {
		r.bus.Require("watch", r.machine.Watch.Sink(o.due))
	}
	r.consoleSink.Follow(report.Lines{
		Progress: report.Progress{
			Metrics: names, Total: r.source.Total(), Every: r.plan.Config.LogEvery,
			Bottleneck: func() string { return r.loop.Path.Pipeline.Stats().Bottleneck() },
		},
		Pace: report.Pace{Every: r.plan.Config.LogEvery, Setup: r.plan.Record().Setup(), Pipeline: func() pipeline.Stats { return r.loop.Path.Pipeline.Stats() }},
		Row:  r.plan.TrainingRow,
		Warn: func(step int64, text string) { r.log.Warn(text, "step", step) },
	})
	return evaluations.Last(), nil
}

// due reports whether a step brings a progress line.
func (o *observer) due(step int64) bool {
	return report.Due(step, o.first, o.run.plan.Config.LogEvery, o.run.source.Total())
}

// close closes everything that the bus does not close. It is idempotent.
func (o *observer) close() error { return errors.Join(o.quarantine.Close(), o.run.samples.Close()) }

// seen receives every batch before it leaves the ring, on the copier's goroutine.
func (o *observer) seen(b *pipeline.Batch, layout *ring.Layout, slot []byte) error {
	o.baselines.Record(b.Eval, b.Rows, layout, slot)
	if b.Eval {
		return nil
	}
	inputs := slices.DeleteFunc(slices.Clone(layout.Tensors), func(t ring.Tensor) bool { return t.Offset >= layout.InputBytes })
	return o.run.debug.Batch(debug.Batch{Step: b.Step + 1, Micro: b.Micro, Seed: b.Seed, Tensors: inputs, Slot: slot})
}

// Batch implements train.Observer.
func (o *observer) Batch(d *pipeline.DeviceSlot) {
	o.stepFrames += o.run.loop.Path.Frames(d)
	o.ledger.Batch(&d.Batch, o.run.plan.TrainingRow)
	for _, row := range d.Batch.LeftOut {
		o.quarantine.Trained(o.run.plan.TrainingRow(row))
	}
}

// Step implements train.Observer.
func (o *observer) Step(s *event.Step) error {
	defer o.run.loop.Timeline.Step()
	s.Frames, o.stepFrames = o.stepFrames, 0
	o.samples += int64(len(s.Rows))
	o.frames += int64(s.Frames)
	if err := o.run.bus.Publish(s); err != nil {
		return err
	}
	normal := o.divergence.Step(s, o.run.log.Warn)
	if s.Skipped || o.due(s.Step) {
		o.run.bus.Wake() // the user waits for the line
	}
	if reason := o.run.machine.Grown(); reason != "" {
		if err := o.run.session.Relieve(reason); err != nil {
			return err
		}
	}
	return o.saver.Step(s.Step, normal, o.divergence.Steady() == s.Step)
}

// shows tells the saver that an evaluation has shown good weights. That of an average shows nothing of the weights.
func (o *observer) shows(loss float64, step int64, best *train.Best) {
	if o.run.plan.Config.EMA == 0 && ending.Good(loss, best) {
		o.saver.Evaluated(step)
	}
}

// Evaluated implements train.Observer.
func (o *observer) Evaluated(e *event.Evaluation) error {
	best := o.run.loop.Train.Progress.Best
	e.Best = best != nil && best.Step == e.Step
	o.run.bus.Publish(e)
	o.publishLowered(e.Step)
	o.shows(e.Loss, e.Step, best)
	if err := o.run.bus.Flush(); err != nil {
		return err
	}
	if e.Best {
		if err := o.saver.Best(); err != nil {
			return err
		}
	}
	o.run.samples.Speak(e.Step)
	return nil
}
