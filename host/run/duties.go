package run

import (
	"errors"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/boards"
	"github.com/xtts-host/xtts-host/host/run/ending"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/nans"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/probes"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/run/speech"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
)

// duties are what a run does between its steps: it saves checkpoints, speaks samples, and keeps the files that are
// not made of events. It implements loop.Duties.
type duties struct {
	*outputs
	plan        *plan.Plan
	machine     *machine.Machine
	session     *session.Session
	ranks       *together.Ranks
	speech      *speech.Speech
	probes      *probes.Prober // nil without
	saver       *save.Saver
	ledger      *report.Ledger
	collector   *report.Collector
	baselines   *report.Baselines
	divergence  report.Divergence
	quarantine  *batch.Quarantine
	nans        *nans.Tracer // nil without --trace-nan
	trained     trained
	evaluations *report.Evaluations
}

// trained counts what the run has been trained on, also before a resume.
type trained struct{ samples, frames int64 }

// newDuties opens the files of the run folder and adds the run's sinks.
func newDuties(r *run, p train.Progress, state *checkpoint.State) (_ *duties, err error) {
	o := &duties{outputs: r.outputs, plan: r.plan, machine: r.machine, session: r.session, ranks: r.ranks}
	if err = errors.Join(r.plan.Data.WriteExcluded(r.dir), r.plan.Data.WriteNames(r.dir)); err != nil {
		return nil, err
	}
	if o.quarantine, err = batch.OpenQuarantine(
		filepath.Join(r.dir, rundir.QuarantineFile), r.plan.Data, r.plan.Config.MaxQuarantine, r.wait, r.log.Warn,
	); err != nil {
		return nil, err
	}
	o.quarantine.Found = r.ranks.Found
	defer func() {
		if err != nil {
			o.quarantine.Close()
		}
	}()
	if state != nil {
		o.quarantine.Restore(state.Reasons(), r.plan.Data.Train)
		o.trained = trained{state.Samples, state.Frames}
	}
	m := r.plan.Bundle.Manifest
	if o.baselines, err = report.NewBaselines(m.Baselines, m.Inputs); err != nil {
		return nil, err
	}
	o.served.Quarantined(o.quarantine.Count)
	if !r.mode.Measures() {
		if o.nans, err = nans.New(nans.Config{
			Plan: r.plan, Session: r.session, Dir: r.dir, Ranks: r.ranks, Stop: r.console.Stop, Bus: r.bus,
			Log: r.log.Logger,
		}, p.Step); err != nil {
			return nil, err
		}
	}
	if err = o.addSinks(r, p); err != nil {
		return nil, err
	}
	o.saver = newSaver(r, o.divergence.Steady())
	if e := o.evaluations.Last(); e != nil && e.Step == p.Step && o.divergence.Steady() == p.Step {
		o.shows(float64(e.Loss), p.Step, p.Best)
	}
	return o, nil
}

// addSinks adds the sinks of the run's events, except the console. The bus closes them.
func (o *duties) addSinks(r *run, p train.Progress) error {
	names := r.plan.Bundle.Manifest.Metrics()
	metrics, err := report.OpenMetrics(filepath.Join(r.dir, rundir.MetricsFile), names, p.Step, r.wait)
	if err != nil {
		return err
	}
	o.divergence = metrics.Divergence()
	if !r.plan.Start.Change.Comparable() {
		o.divergence.Forget()
	}
	r.bus.RequireFile(rundir.MetricsFile, metrics)
	evaluations, err := report.OpenEvaluations(filepath.Join(r.dir, rundir.EvalFile), names, p.EvaluatedStep, r.wait)
	if err != nil {
		return err
	}
	r.bus.RequireFile(rundir.EvalFile, evaluations)
	if o.ledger, err = report.OpenLedger(r.debug.Ledger(), p.Step, r.wait); err != nil {
		return err
	}
	if o.ledger != nil {
		r.bus.RequireFile("ledger", o.ledger)
	}
	before := report.Before{
		Steps: metrics.History(), Recent: metrics.Recent(), Evaluation: evaluations.Last(), Warm: r.mode.Warm(),
	}
	if p.Step > 0 { // a report that cannot be read is written again, without its figures
		if r, err := report.Read(filepath.Join(r.dir, rundir.ReportFile)); err == nil {
			before.Baselines = r.Baselines
		}
	}
	o.collector = report.NewCollector(names, before)
	r.bus.Require(rundir.ReportFile, o.collector)
	if r.machine.Watch != nil {
		r.bus.Require("watch", r.machine.Watch.Sink())
	}
	if !r.mode.Measures() {
		boards.Add(&boards.Run{
			Plan: r.plan, Dir: r.dir, Progress: p, Skipped: metrics.History().Skipped, Bus: r.bus, Log: r.log.Logger,
		})
	}
	o.evaluations = evaluations
	return nil
}

// close closes everything that the bus does not close. It is idempotent.
func (o *duties) close() error {
	o.served.Unwatch()
	return errors.Join(o.quarantine.Close(), o.speech.Close(), o.probes.Close())
}

// Batch implements loop.Duties.
func (o *duties) Batch(d *pipeline.DeviceSlot) {
	o.ledger.Batch(&d.Batch, o.plan.TrainingRow)
	o.nans.Batch(d)
	for _, row := range d.Batch.LeftOut {
		o.quarantine.Trained(o.plan.TrainingRow(row))
		o.ranks.Trained(o.plan.TrainingRow(row))
	}
}

// Step implements loop.Duties.
func (o *duties) Step(s *event.Step) error {
	o.trained.samples += int64(s.Samples())
	o.trained.frames += int64(s.Frames)
	o.speech.Step(s.Time)
	normal := o.divergence.Step(s, o.log.Warn)
	o.nans.Step(s)
	if reason := o.machine.Grown(); reason != "" {
		if err := o.session.Relieve(reason); err != nil {
			return err
		}
	}
	if err := o.ranks.Step(o.session.Model, s); err != nil {
		return err
	}
	return o.saver.Step(s.Step, normal, o.divergence.Steady() == s.Step)
}

// shows tells the saver that an evaluation has shown good weights. That of an average shows nothing of the weights.
func (o *duties) shows(loss float64, step int64, best *train.Best) {
	if o.plan.Config.EMA == 0 && ending.Good(loss, best) {
		o.saver.Evaluated(step)
	}
}

// Evaluated implements loop.Duties.
func (o *duties) Evaluated(e *event.Evaluation, best *train.Best) error {
	o.shows(e.Loss, e.Step, best)
	if err := o.bus.Flush(); err != nil {
		return err
	}
	if e.Best {
		if err := o.saver.Best(); err != nil {
			return err
		}
	}
	o.speech.Evaluated(e)
	o.probes.Evaluated(e.Step)
	return nil
}
