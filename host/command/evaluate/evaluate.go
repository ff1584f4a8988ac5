// Package evaluate measures the loss of a checkpoint on validation data, as the run that saved it would. It trains
// nothing and writes nothing into the run's folder.
package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/engine"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Run runs the command. set.Resume names the run; flags replace its other settings. asJSON writes a Result to
// console.Out, and the text to console.Err.
func Run(ctx context.Context, set *config.Set, asJSON bool, console console.Console) (err error) {
	text := console.Out
	if asJSON {
		text = console.Err
	}
	ctx, done := console.Stoppable(ctx, "step")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	set.Silent, set.Adaptive = true, false // it measures only training
	p, err := plan.New(ctx, set, inventory.Open, console.Waiting())
	if err != nil {
		return exit.Refused(err)
	}
	defer p.Close()
	if p.Data.Val == nil {
		return exit.Refused(hint.Errorf("name it with --val-data", "the run has no validation data, and none is given"))
	}
	p.Config.Fuse = config.Off // the training graph does not run
	opened, err := engine.Open(ctx, p, console)
	if err != nil {
		return exit.Refused(err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	opened.Bus.Offer("progress", works{console.Waiting()}, nil)
	e := &evaluation{Engine: opened, plan: p}
	describe(text, p)
	err = e.measure(ctx, console.Stop)
	if n := len(e.unusable); n > 0 {
		visible.Fprintf(text, "left out, too: %s: cannot be used\n", units.Count(n, "clip"))
		unusable(text, p.Data.Val, e.unusable)
	}
	if err != nil {
		return err
	}
	w := labelled(p)
	w.row(text, "step", "%d", e.found.Step)
	w.row(text, "loss", "%s", units.Number(e.found.Loss))
	for i, name := range p.Bundle.Manifest.Metrics() {
		w.row(text, name, "%s", units.Number(e.found.Metrics[i]))
	}
	w.row(text, "evaluated", "%s in %s", units.Count(int64(e.found.Samples), "row"), units.Duration(e.found.Time))
	if asJSON {
		err = report.JSON(console.Out, e.result())
	}
	if l := e.found.Loss; err == nil && (math.IsNaN(l) || math.IsInf(l, 0)) {
		err = hint.Errorf("evaluate an earlier one with --run RUN@STEP, and listen to the clips",
			"the loss of checkpoint %s is not finite", p.Start.Resumed.Path)
	}
	return err
}

// labels is the width of the first column.
type labels int

// labelled has room for the names of the metrics.
func labelled(p *plan.Plan) labels {
	w := len("checkpoint")
	for _, name := range p.Bundle.Manifest.Metrics() {
		w = max(w, len(name))
	}
	return labels(w + 3)
}

func (w labels) row(out io.Writer, label, format string, args ...any) {
	visible.Fprintf(out, "%s", fmt.Sprintf("%-*s", int(w), label))
	visible.Fprintf(out, format+"\n", args...)
}

// describe describes the checkpoint and the data.
func describe(out io.Writer, p *plan.Plan) {
	w, val, used := labelled(p), p.Data.Val, p.Data.Usage.Validation
	w.row(out, "checkpoint", "%s", p.Start.Resumed.Path)
	w.row(out, "validation", "%s: %s", filepath.Join(val.Index.Dir, val.Index.List), used)
	for _, line := range used.Lines() {
		w.row(out, "", "%s", line)
	}
	unusable(out, val, val.Index.Rejected)
}

func unusable(out io.Writer, val *batch.Split, lines []dataset.Rejected) {
	for _, line := range val.Unusable(lines) {
		visible.Fprintf(out, "               %s\n", line)
	}
}

// Result is the result as JSON.
type Result struct {
	Checkpoint string                  `json:"checkpoint"`
	Data       string                  `json:"data"`
	Step       int64                   `json:"step"`
	Loss       report.Float            `json:"loss"`
	Metrics    map[string]report.Float `json:"metrics"`
	Samples    int                     `json:"samples"`
	// Quarantined counts the clips of the validation data that cannot be used.
	Quarantined int     `json:"quarantined"`
	EvalMs      float64 `json:"eval_ms"`
}

// evaluation is a model with the pipeline of the validation data.
type evaluation struct {
	*engine.Engine
	plan *plan.Plan

	found    event.Evaluation
	unusable []dataset.Rejected // clips whose list did not show it
}

// measure sends the validation data through the model.
func (e *evaluation) measure(ctx context.Context, stop <-chan struct{}) error {
	p := e.plan
	q, err := batch.OpenQuarantine("", p.Data, p.Config.MaxQuarantine, nil, nil)
	if err != nil {
		return err
	}
	defer q.Close()
	if err := e.Session.Restore(&p.Start); err != nil {
		return exit.Refused(err)
	}
	at := p.Progress()
	source := p.Source()
	// A run that ends at the checkpoint's step without an evaluation has exactly this evaluation left.
	source.MaxSteps, source.Epochs = at.Step, int(at.Step)
	at = train.Progress{Step: at.Step, Epoch: at.Epoch, Batch: at.Batch}
	source.Start(at.Position())
	l, err := loop.New(loop.Config{
		Plan: p, Machine: e.Machine, Session: e.Session, Source: source, Progress: at, Stop: stop,
		Duties: (*duties)(e), Quarantine: q, Bus: e.Bus, Log: e.Log,
	})
	if err != nil {
		return exit.Refused(err)
	}
	err = l.Run(ctx)
	e.unusable = p.Data.Val.Lines(q.Unusable(report.Validation))
	return e.Session.Device.Full(err)
}

// result returns the evaluation as a Result.
func (e *evaluation) result() *Result {
	val := e.plan.Data.Val.Index
	r := &Result{
		Checkpoint: e.plan.Start.Resumed.Path, Data: filepath.Join(val.Dir, val.List), Step: e.found.Step,
		Loss: report.Float(e.found.Loss), Metrics: map[string]report.Float{}, Samples: e.found.Samples,
		Quarantined: len(val.Rejected) + len(e.unusable), EvalMs: e.found.Time.Seconds() * 1e3,
	}
	for i, name := range e.plan.Bundle.Manifest.Metrics() {
		r.Metrics[name] = report.Float(e.found.Metrics[i])
	}
	return r
}
