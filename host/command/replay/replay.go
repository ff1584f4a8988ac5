// Package replay makes a step of a run again: its batch, its draws and its gradients, bit for bit, and writes them into
// a new folder. docs/step.md describes the folder. The folder of the run is only read.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/engine"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Options says what to replay.
type Options struct {
	Step int64  // counted from 1
	Out  string // the folder to write, which must not be there; "" for one in the working directory
}

// Run replays a step of the run that set.Resume names.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) (err error) {
	ctx, done := console.Stoppable(ctx, "step")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	past, err := lookBack(set, o.Step)
	if err != nil {
		return exit.Refused(err)
	}
	defer past.close()
	to, err := newFolder(past.run, o)
	if err != nil {
		return exit.Refused(err)
	}
	p, err := plan.New(ctx, set, inventory.Open, console.Waiting())
	if err != nil {
		return exit.Refused(past.explain(err))
	}
	defer p.Close()
	if err := past.fits(p); err != nil {
		return exit.Refused(err)
	}
	r := &replay{plan: p, past: past, out: to, text: console.Out, waiting: console.Waiting(), step: o.Step}
	defer r.waiting.Close()
	r.describe()
	if err = to.make(); err != nil {
		return exit.Refused(err)
	}
	defer func() {
		if err = errors.Join(err, r.Close()); err != nil && !errors.Is(err, errDiffers) {
			err = errors.Join(err, to.remove())
		}
	}()
	if err := r.open(ctx, console); err != nil {
		return exit.Refused(err)
	}
	return r.replay(ctx, console.Stop)
}

// errDiffers says that the replay differs from the run.
var errDiffers = errors.New("the replay differs from the run")

// replay is a step that is made again, with the steps since the state that the run has kept.
type replay struct {
	plan    *plan.Plan
	past    *past
	out     *folder
	text    io.Writer
	waiting *report.Waiting
	step    int64

	*engine.Engine
	kept kept
}

// describe says what will be replayed, and how long that takes.
func (r *replay) describe() {
	from := r.past.step
	begin := "the weights that the run began with"
	if c := r.plan.Start.Resumed; c != nil && from > 0 {
		begin = c.Path
	}
	visible.Fprintf(r.text, "run        %s\nfrom       %s\n", r.past.run, begin)
	n := r.step - from
	took := ""
	if seconds := r.past.seconds(); seconds > 0 {
		took = fmt.Sprintf(" (%s in the run)", units.Duration(seconds))
	}
	what := fmt.Sprintf("steps %d to %d", from+1, r.step)
	if n == 1 {
		what = fmt.Sprintf("step %d", r.step)
	}
	visible.Fprintf(r.text, "replays    %s%s\n", what, took)
	for step := from + 1; step <= r.step; step++ {
		if r.past.damaged(step) {
			visible.Fprintf(r.text, "           steps without a line are not compared: %s\n", r.past.problem)
			break
		}
	}
	if device := r.past.device; device != "" && device != r.plan.Device() {
		visible.Fprintf(r.text, "           the run trained on %s, this is %s: the bits differ\n", device,
			r.plan.Device())
	}
}

// open starts the plugins and opens the graphs, with the weights before the first step.
func (r *replay) open(ctx context.Context, console console.Console) (err error) {
	if r.Engine, err = engine.Open(ctx, r.plan, console); err != nil {
		return err
	}
	switch start := &r.plan.Start; {
	case start.Weights != nil:
		return r.Session.Init(start.Weights, io.Discard)
	case r.past.step > 0:
		return r.Session.Restore(start)
	}
	return session.Begin(r.Session)
}

// replay trains up to the step, and writes the folder.
func (r *replay) replay(ctx context.Context, stop <-chan struct{}) error {
	p := r.plan
	q, err := batch.OpenQuarantine("", p.Data, p.Config.MaxQuarantine, nil, nil)
	if err != nil {
		return err
	}
	defer q.Close()
	if c := p.Start.Resumed; c != nil {
		q.Restore(c.State.Reasons(), p.Data.Train)
	}
	// The run has gone on after these steps, whatever would end it now.
	p.Config.MaxSkipped, p.Config.EarlyStop = math.MaxInt, 0
	source, at := p.Source(), p.Progress()
	source.MaxSteps = r.step
	if !watchesEvaluations(p) {
		source.Val = nil
	}
	source.Start(at.Position())
	r.kept.micro = make([]*micro, p.Config.Accumulate)
	l, err := loop.New(loop.Config{
		Plan: p, Machine: r.Machine, Session: r.Session, Source: source, Progress: at, Stop: stop, Duties: r,
		Quarantine: q, Bus: r.Bus, Log: r.Log, Copied: r.kept.copied(r.step),
	})
	if err != nil {
		return exit.Refused(err)
	}
	l.Train.Policy.Judge = judge(p)
	if at.Step == r.step-1 {
		if err := r.before(); err != nil {
			return err
		}
	}
	err = l.Run(ctx)
	if r.kept.done == nil {
		if err == nil {
			err = fmt.Errorf("the replay ended before step %d", r.step)
		}
		return r.Session.Device.Full(err)
	}
	if err := r.write(); err != nil {
		return err
	}
	return r.verdict()
}

// watchesEvaluations reports whether learning rates depend on evaluations.
func watchesEvaluations(p *plan.Plan) bool {
	for _, s := range p.Schedules() {
		if s.Name == schedule.Plateau {
			return true
		}
	}
	return false
}

// judge is how the run compared its evaluations: nil for the loss. past.fits has refused the other measures where they
// matter.
func judge(p *plan.Plan) func(*event.Evaluation) float64 {
	metric := slices.Index(p.Bundle.Manifest.Metrics(), p.BestBy())
	if metric < 0 {
		return nil
	}
	return func(e *event.Evaluation) float64 { return e.Metrics[metric] }
}

// verdict says what was found and where it is, and whether it is the run.
func (r *replay) verdict() error {
	r.waiting.Close()
	s := r.kept.done
	loss := units.Number(s.Loss)
	if s.Skipped {
		loss += " (the step was skipped)"
	}
	visible.Fprintf(r.text, "step %-5d loss %s  grad_norm %s  %s\n", s.Step, loss, units.Number(s.GradNorm),
		units.Count(len(s.Rows), "row"))
	visible.Fprintf(r.text, "written    %s\n", r.out.path)
	d := r.past.differs
	if d == nil && r.past.verified == 0 {
		visible.Fprintf(r.text, "verified   no step: %s has no line of any\n", rundir.MetricsFile)
		return nil
	}
	if d == nil {
		visible.Fprintf(r.text, "verified   %s: the same bits as in the run\n",
			units.Count(int64(r.past.verified), "step"))
		return nil
	}
	err := hint.Errorf(d.advice(), "%w: step %d is the first one, its %s was %s and is %s now", errDiffers, d.Step,
		d.Key, d.Run, d.Replay)
	if r.exact() {
		return err
	}
	visible.Fprintf(r.text, "verified   %v\n           a GPU without --deterministic adds in another order each time\n",
		err)
	return nil
}

// exact reports whether the replay must have the bits of the run.
func (r *replay) exact() bool {
	return (r.past.device == "" || r.past.device == r.plan.Device()) && (!r.plan.OnGPU() || r.plan.Config.Deterministic)
}

// folderName is where a step is written by default.
func folderName(run string, step int64) string {
	return fmt.Sprintf("%s-step-%06d", filepath.Base(filepath.Clean(run)), step)
}
