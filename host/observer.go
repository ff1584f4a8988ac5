package host

import (
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/debug"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// observer publishes what the training loop does, and has checkpoints taken between its steps.
type observer struct {
	run        *run
	saver      *saver
	ledger     *report.Ledger
	collector  *report.Collector
	baselines  *report.Baselines
	quarantine *batch.Quarantine

	first  int64 // step of this process
	frames int   // of the step so far
}

// newObserver opens the files of the run folder and adds the run's sinks.
func newObserver(r *run, p train.Progress, state *checkpoint.State) (_ *observer, err error) {
	o := &observer{run: r, first: p.Step + 1}
	if err = r.data.WriteExcluded(r.dir); err != nil {
		return nil, err
	}
	if o.quarantine, err = batch.OpenQuarantine(filepath.Join(r.dir, report.QuarantineFile), r.data, r.cfg.MaxQuarantine); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.quarantine.Close()
		}
	}()
	if state != nil {
		o.quarantine.Restore(state.Quarantine, r.data.Train)
	}
	o.saver = newSaver(r, o.quarantine, state)
	if o.baselines, err = report.NewBaselines(r.bundle.Manifest.Baselines, r.bundle.Manifest.Inputs); err != nil {
		return nil, err
	}
	if err = o.addSinks(p); err != nil {
		return nil, err
	}
	r.bus.Publish(&event.Start{ // a sink that has failed ends the run at its first step
		Dir: r.dir, Bundle: r.bundle.Manifest.Name, Device: r.record().Device(), Metrics: r.bundle.Manifest.Metrics(),
		Step: p.Step, Total: r.source.Total(),
	})
	return o, nil
}

// addSinks adds what takes the run's events, beside the console. The bus closes it.
func (o *observer) addSinks(p train.Progress) error {
	r, names := o.run, o.run.bundle.Manifest.Metrics()
	metrics, err := report.OpenMetrics(filepath.Join(r.dir, report.MetricsFile), names, p.Step)
	if err != nil {
		return err
	}
	r.bus.Require(report.MetricsFile, metrics)
	evaluations, err := report.OpenEvaluations(filepath.Join(r.dir, report.EvalFile), names, p.EvaluatedStep)
	if err != nil {
		return err
	}
	r.bus.Require(report.EvalFile, evaluations)
	if o.ledger, err = report.OpenLedger(r.debug.Ledger(), p.Step); err != nil {
		return err
	}
	if o.ledger != nil {
		r.bus.Require("ledger", o.ledger)
	}
	o.collector = report.NewCollector(names, metrics.History())
	r.bus.Require(report.ReportFile, o.collector)
	if r.watch != nil {
		r.bus.Require("watch", watchSink{r.watch, o.due})
	}
	r.person.Follow(report.Lines{
		Progress: report.Progress{
			Metrics: names, Total: r.source.Total(), Every: r.cfg.LogEvery,
			Bottleneck: func() string { return r.path.Pipeline.Stats().Bottleneck() },
		},
		Pace: report.Pace{Every: r.cfg.LogEvery, Setup: r.record().Setup(), Pipeline: func() pipeline.Stats { return r.path.Pipeline.Stats() }},
		Row:  r.trainingRow,
		Warn: func(step int64, text string) { r.log.Warn(text, "step", step) },
	})
	return nil
}

// due reports whether a step brings a progress line.
func (o *observer) due(step int64) bool {
	return report.Due(step, o.first, o.run.cfg.LogEvery, o.run.source.Total())
}

// trainingRow names a row of the training data.
func (j *job) trainingRow(row int32) string { return j.data.Train.Index.Rows[row].ID }

// close closes what the bus does not. It may be called again.
func (o *observer) close() error { return o.quarantine.Close() }

// seen takes every batch before it leaves the ring, on the copier's goroutine.
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
	o.frames += o.run.path.Frames(d)
	o.ledger.Batch(&d.Batch, o.run.trainingRow)
	for _, row := range d.Batch.LeftOut {
		o.quarantine.Trained(o.run.trainingRow(row))
	}
}

// Step implements train.Observer.
func (o *observer) Step(s *event.Step) error {
	defer o.run.timeline.Step()
	s.Frames, o.frames = o.frames, 0
	o.saver.trained(s)
	if err := o.run.bus.Publish(s); err != nil {
		return err
	}
	if s.Skipped || o.due(s.Step) {
		o.run.bus.Wake() // a person waits for the line
	}
	if err := o.run.relieve(); err != nil {
		return err
	}
	return o.saver.step(s.Step)
}

// Evaluated implements train.Observer.
func (o *observer) Evaluated(e *event.Evaluation) error {
	best := o.run.loop.Progress.Best
	e.Best = best != nil && best.Step == e.Step
	o.run.bus.Publish(e)
	if err := o.run.bus.Flush(); err != nil {
		return err
	}
	return o.saver.evaluated(e)
}
