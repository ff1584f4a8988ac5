package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/disk"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
)

const (
	metricsFile = "metrics.jsonl"
	evalFile    = "eval.jsonl"
	reportFile  = "report.json"
)

// observer writes the run folder and tells the person: it is told of every step and decides when to save.
type observer struct {
	run        *run
	metrics    *report.Metrics
	evals      *report.Evaluations
	ledger     *report.Ledger
	progress   report.Progress
	pace       report.Pace
	collector  *report.Collector
	baselines  *report.Baselines
	quarantine *batch.Quarantine

	// Windows are accounted for together: one at a time, each finds nothing of what it needs in the processor's caches, since the trainer
	// has slept while the device worked.
	pending   event.Steps
	accounted time.Time // the last time

	frames       int   // of the window so far
	samplesTotal int64 // trained on, also before a resume
	framesTotal  int64
	saved        [2]int64 // step and evaluated step of the last checkpoint, -1 before the first
	unsaved      int      // checkpoints that the disk had no room for
	best         string   // folder of the best checkpoint that was saved
	lost         bool     // a line of the run folder's files could not be written
}

func newObserver(r *run, p train.Progress, state *checkpoint.State) (_ *observer, err error) {
	names := r.bundle.Manifest.Metrics()
	o := &observer{run: r, saved: [2]int64{-1, -1}}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if err = r.data.WriteExcluded(r.dir); err != nil {
		return nil, err
	}
	if o.quarantine, err = batch.OpenQuarantine(filepath.Join(r.dir, "quarantine.jsonl"), r.data, r.cfg.MaxQuarantine); err != nil {
		return nil, err
	}
	if state != nil {
		o.samplesTotal, o.framesTotal, o.saved = state.Samples, state.Frames, [2]int64{state.Step, state.EvaluatedStep}
		if state.Best != nil {
			o.best = r.store.Kept(state.Best.Step)
		}
		o.quarantine.Restore(state.Quarantine, r.data.Train)
	}
	if o.metrics, err = report.OpenMetrics(filepath.Join(r.dir, metricsFile), names, p.Step); err != nil {
		return nil, err
	}
	if o.evals, err = report.OpenEvaluations(filepath.Join(r.dir, evalFile), names, p.EvaluatedStep); err != nil {
		return nil, err
	}
	if o.ledger, err = report.OpenLedger(r.debug.Ledger(), p.Step); err != nil {
		return nil, err
	}
	o.progress = report.Progress{Metrics: names, Total: r.source.Total(), Every: r.cfg.LogEvery, Bar: r.console.bar != nil, Bottleneck: func() string { return r.path.Pipeline.Stats().Bottleneck() }}
	o.pace = report.Pace{Every: r.cfg.LogEvery, Setup: r.setup(), Pipeline: func() pipeline.Stats { return r.path.Pipeline.Stats() }}
	o.collector = report.NewCollector(names, o.metrics.History())
	o.baselines, err = report.NewBaselines(r.bundle.Manifest.Baselines, r.bundle.Manifest.Inputs)
	return o, err
}

// close closes the files. It may be called again.
func (o *observer) close() error {
	var errs []error
	if o.metrics != nil {
		errs = append(errs, o.metrics.Close())
	}
	if o.evals != nil {
		errs = append(errs, o.evals.Close())
	}
	if o.quarantine != nil {
		errs = append(errs, o.quarantine.Close())
	}
	errs = append(errs, o.ledger.Close())
	return errors.Join(errs...)
}

func (o *observer) say(line string) {
	if line != "" {
		fmt.Fprintln(o.run.console.Out, line)
	}
}

// seen gets every batch before it leaves the ring, from the copier.
func (o *observer) seen(b *pipeline.Batch, layout *ring.Layout, slot []byte) {
	o.baselines.Record(b.Eval, b.Rows, layout, slot)
}

// Batch implements train.Observer.
func (o *observer) Batch(d *pipeline.DeviceSlot) {
	o.frames += o.run.path.Frames(d)
	o.ledger.Batch(&d.Batch, func(row int32) string { return o.run.data.Train.Index.Rows[row].ID })
	for _, row := range d.Batch.LeftOut {
		o.quarantine.Trained(o.run.data.Train.Index.Rows[row].ID)
	}
}

// Step implements train.Observer.
func (o *observer) Step(w *event.Step) error {
	defer o.run.timeline.Step()
	w.Frames, o.frames = o.frames, 0
	o.samplesTotal += int64(len(w.Rows))
	o.framesTotal += int64(w.Frames)
	if err := errors.Join(o.ledger.Write(w.Step), o.metrics.Write(w)); err != nil {
		o.lost = true
		return err
	}
	if err := o.run.relieve(); err != nil {
		return err
	}
	o.pending.Add(w)
	if w.Skipped || o.progress.Due(w) || time.Since(o.accounted) >= accountEvery {
		if err := o.account(); err != nil {
			return err
		}
	}
	if every := o.run.cfg.CheckpointEvery; every > 0 && w.Step%every == 0 {
		return o.saveIfRoom()
	}
	return nil
}

// accountEvery is how long a window waits for that at most. A line that is due waits for nothing.
const accountEvery = time.Second

// account does it for the windows that wait.
func (o *observer) account() error {
	o.accounted = time.Now()
	for i := range o.pending {
		w := &o.pending[i]
		o.collector.Step(w)
		if w.Skipped {
			o.say(o.progress.Skipped(w, func(row int32) string { return o.run.data.Train.Index.Rows[row].ID }))
		}
		progress := o.progress.Window(w)
		o.say(progress)
		o.run.watch.Window(w.Step, progress != "")
		line, warning := o.pace.Window(w)
		o.say(line)
		if warning != "" {
			o.run.log.Warn(warning, "step", w.Step)
		}
	}
	o.pending = o.pending[:0]
	o.run.console.bar.Show(o.progress.Status())
	if err := o.run.logged(); err != nil {
		o.lost = true
		return err
	}
	return nil
}

// saveIfRoom takes a checkpoint on the way. A disk without room for it does not end the run: the checkpoint before is as
// it was, and by the next one there may be room. The lines of metrics.jsonl have to fit all the same.
func (o *observer) saveIfRoom() error {
	err := o.save()
	full, ok := errors.AsType[*disk.FullError](err)
	if !ok || filepath.Dir(full.Path) != filepath.Join(o.run.dir, checkpoint.Folder) {
		return err
	}
	o.unsaved++
	o.run.log.Warn("the disk is full: the run goes on without this checkpoint ("+full.Hint()+")", "step", o.run.loop.Progress.Step, "error", err)
	return nil
}

// Evaluated implements train.Observer.
func (o *observer) Evaluated(e *event.Evaluation) error {
	if err := o.account(); err != nil {
		return err
	}
	best := o.run.loop.Progress.Best
	isBest := best != nil && best.Step == e.Step
	o.collector.Evaluated(e)
	o.say(o.progress.Evaluated(e, isBest))
	if err := o.evals.Write(e); err != nil {
		o.lost = true
		return err
	}
	if isBest && o.run.cfg.CheckpointEvery > 0 {
		return o.saveIfRoom()
	}
	return nil
}

// save takes a checkpoint. The lines of the steps that it counts are made durable first.
func (o *observer) save() error {
	r, began := o.run, time.Now()
	defer func() { r.timeline.Trained("checkpoint", nil, began, time.Now()) }()
	if err := errors.Join(o.metrics.Sync(), o.evals.Sync(), o.ledger.Sync()); err != nil {
		o.lost = true // finish shall not try, and say, the same again
		return err
	}
	p := r.loop.Progress
	state := checkpoint.State{
		Step: p.Step, OptimizerStep: r.optimizer.Steps, Epoch: p.Epoch, Batch: p.Batch, Seed: r.cfg.Seed,
		Schedule:      checkpoint.Schedule{Name: r.schedule.Name, BaseLR: r.schedule.BaseLR, WarmupSteps: r.schedule.WarmupSteps, TotalSteps: r.schedule.TotalSteps},
		EvaluatedStep: p.EvaluatedStep, Samples: o.samplesTotal, Frames: o.framesTotal,
		Quarantine: o.quarantine.List(), Hashes: r.hashes,
	}
	if p.Best != nil {
		state.Best = &checkpoint.Best{Step: p.Best.Step, Loss: p.Best.Loss}
	}
	if err := r.pull(); err != nil {
		return err
	}
	path, err := r.store.Save(context.Background(), state, r.model.Weights(), r.optimizer.Moments())
	if err != nil {
		return err
	}
	o.saved = [2]int64{p.Step, p.EvaluatedStep}
	if p.Best != nil && p.Best.Step == p.Step {
		o.best = path // where the disk had no room for a better one, it stays the one before
	}
	r.log.Info("checkpoint", "path", path, "step", p.Step)
	if r.cfg.KeepLast > 0 {
		return r.store.Prune(r.cfg.KeepLast, o.best)
	}
	return nil
}

var errDone = errors.New("the last step")

// finish saves what is not saved yet, writes the report and prints the table. outcome is how training ended, which
// it returns unless something worse happened.
func (o *observer) finish(outcome error) error {
	r := o.run
	err := outcome
	if aerr := o.account(); aerr != nil {
		err = errors.Join(err, aerr)
	}
	switch p := r.loop.Progress; {
	case p.Step == 0 || r.feeding != batch.Overlapped || o.saved == [2]int64{p.Step, p.EvaluatedStep}:
	case r.optimizer.Torn() || o.lost:
		r.log.Warn(fmt.Sprintf("step %d is not saved: it is not whole; go on from the checkpoint before it with --resume %s", p.Step, r.dir))
	default:
		if serr := o.save(); serr != nil {
			// Not joined: an interruption whose checkpoint failed must not look like one that was saved.
			err = fmt.Errorf("%w (after: %v)", serr, cmp.Or(outcome, errDone))
		}
	}
	if errors.Is(err, train.ErrInterrupted) && o.saved[0] > 0 {
		err = hint.Errorf("go on with --resume "+r.dir, "%w", err)
	}
	if (errors.Is(err, supervise.ErrCrashLoop) || errors.Is(err, supervise.ErrFailed)) && o.saved[0] > 0 {
		err = hint.Errorf(hint.Of(err)+"; then go on with --resume "+r.dir, "%w", err)
	}
	if cerr := o.close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	facts, ferr := o.facts(outcome)
	if ferr != nil {
		return errors.Join(err, ferr)
	}
	out := o.collector.Build(facts)
	if werr := out.Write(filepath.Join(r.dir, reportFile)); werr != nil {
		return errors.Join(err, werr)
	}
	r.console.bar.Close()
	fmt.Fprint(r.console.Out, "\n", out.Table(r.dir))
	return err
}
