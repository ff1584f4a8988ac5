package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/ranks/launch"
	"github.com/xtts-host/xtts-host/host/run/boards"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/probes"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/run/speech"
	"github.com/xtts-host/xtts-host/host/run/summary"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// Train trains. When it returns, all processes and goroutines of the run have ended. exit.Code maps its error to the
// exit status, and exit.Hint returns the hint.
func Train(ctx context.Context, set *config.Set, console console.Console) error {
	return TrainAs(ctx, set, console, launch.Found{})
}

// TrainAs is Train for one of several processes that train a model together. Rank 0 has the outputs of the run. Each of
// the others has a folder in the run folder, and no console.
func TrainAs(ctx context.Context, set *config.Set, console console.Console, rank launch.Found) error {
	_, err := trainAs(ctx, set, console, batch.Input{}, rank)
	return err
}

// TrainWith is Train with a choice of input. It returns the report of a run that reached its first step.
func TrainWith(
	ctx context.Context, set *config.Set, console console.Console, mode batch.Input,
) (*report.Report, error) {
	return trainAs(ctx, set, console, mode, launch.Found{})
}

// trainAs is TrainWith and TrainAs. A run has five phases: settings, plan, machine, session, run. Each phase uses the
// results of the previous phases. The first four mark their errors as refusals (exit.Refused), which exit.Code maps to
// status 2 unless the kind of the error has a status of its own, such as 3 for memory.
func trainAs(
	ctx context.Context, set *config.Set, console console.Console, mode batch.Input, rank launch.Found,
) (_ *report.Report, err error) {
	set.World = rank.World
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := newOutputs(console.Shown(rank.Leads()), set.DiskWait)
	defer out.bus.Close()
	defer files.WaitWith(out.wait)()
	starting, done := out.console.Stoppable(ctx, "step")
	defer done()
	if set.PrintConfig() {
		return nil, exit.Refused(plan.PrintSettings(starting, set, console.Out))
	}
	others, err := together.Join(starting, cancel, &set.Config, rank, console.Err, out.console.Err)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, others.Close(err)) }()
	if out.served, err = boards.Serve(&set.Config, rank.Leads(), out.bus, out.log.Logger); err != nil {
		return nil, exit.Refused(err)
	}
	p, err := plan.New(starting, set, inventory.Open, out.bus.Reader())
	if err != nil {
		return nil, exit.Refused(others.Because(err))
	}
	defer p.Close()
	if err := others.Agree(p); err != nil {
		return nil, exit.Refused(err)
	}
	if text := p.Complete(); text != "" {
		machine.Complete(out.console.Out, text)
		return nil, nil
	}
	folder, err := others.Claim(set, out.began)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, others.Close(err)); folder.Close(err) }() // the others' folders are in it
	defer func() { err = errors.Join(err, out.bus.Close()) }()                      // while the folder is locked
	return trainIn(ctx, starting, folder, set, p, out, others, mode)
}

// trainIn trains in a run folder. starting is the context of all before the first step.
func trainIn(
	ctx, starting context.Context, folder *runfolder.Folder, set *config.Set, p *plan.Plan, out *outputs,
	others *together.Ranks, mode batch.Input,
) (_ *report.Report, err error) {
	if err := out.open(p, folder); err != nil {
		return nil, exit.Refused(err)
	}
	defer func() {
		if cerr := out.close(); err == nil {
			err = cerr
		}
	}()
	if others.Leads() {
		if err := config.Confirm(set); err != nil {
			out.log.Info("code of this run is not remembered", "error", err)
		}
	}
	io.WriteString(out.console.Out, summary.Banner(p, folder.Path))
	summary.Warn(p, out.log.Logger)
	m, err := openMachine(starting, p, out, others)
	if err != nil {
		return nil, exit.Refused(err)
	}
	s := session.New(p, mode.InputMode, m.Watch, out.log.Logger)
	s.Join = others.Reducer()
	defer func() {
		others.Fail(err) // before what the others use is freed
		if cerr := errors.Join(s.Close(), m.Close()); err == nil {
			err = cerr
		}
	}()
	if err := open(starting, m, s, out.bus); err != nil {
		return nil, exit.Refused(err)
	}
	out.settings = func() error { return p.WriteSettings(set, folder.Path) }
	if err := out.settings(); err != nil {
		return nil, err
	}
	if err := prepare(starting, s, out); err != nil {
		return nil, exit.Refused(others.Because(err))
	}
	if p.Start.Resumed != nil {
		out.log.WarnOf(report.OtherForms(folder.Path, s.Graphs())...)
	}
	r, err := newRun(starting, p, m, s, out, others, folder.Path, mode)
	if err != nil {
		return nil, exit.Refused(err)
	}
	defer r.duties.close()
	if err := others.Ready(r.duties.quarantine, s.Model, s.Updates(), r.loop.Train.Progress.Step); err != nil {
		return nil, exit.Refused(err)
	}
	return r.finish(r.loop.Run(ctx))
}

// openMachine opens what a run has besides the model.
func openMachine(ctx context.Context, p *plan.Plan, out *outputs, all *together.Ranks) (*machine.Machine, error) {
	return machine.Open(ctx, machine.Config{
		Plan: p, Log: out.log.Logger, Debug: out.debug, Inventory: inventory.Open, Feed: all.Feed(p, out.log),
		Memory: func(m *event.Memory) { out.bus.Publish(m) }, Cache: machine.CacheOf(p.Config, out.log.Logger),
		Say: func(line string) { fmt.Fprintln(out.console.Err, line) },
	})
}

// open starts the plugins in parallel with opening the graphs, because plugins are other processes.
func open(ctx context.Context, m *machine.Machine, s *session.Session, bus *event.Bus) error {
	defer bus.Begin(event.Work{Task: event.Opening, Unit: "plugins and graphs"}).End()
	return s.OpenBeside(ctx, m.Ring.Bytes(), m.StartPlugins)
}

// prepare makes trial runs and captures on the trainer's goroutine, and reports the result.
func prepare(ctx context.Context, s *session.Session, out *outputs) error {
	job := out.bus.Begin(event.Work{Task: event.Compiling, Unit: "kernels, and trying all buckets"})
	found, err := s.Prepare(ctx)
	job.End()
	if err != nil || found == "" {
		return err
	}
	fmt.Fprintf(out.console.Out, "fused graph  %s\ncuda graphs  %s\nupdate       %s\n%s",
		strings.Join(s.Fusion.Lines(), "\n             "), found, s.Updates(), s.RankSums())
	if _, fault := s.Optimizers.InKernels(); fault != nil {
		out.log.Warn(fmt.Sprintf("the fused update is not used: %v; updates use %s, which is slower", fault,
			s.Updates()))
	}
	return nil
}

// run is a training run in a run folder.
type run struct {
	*outputs
	plan    *plan.Plan
	machine *machine.Machine
	session *session.Session
	ranks   *together.Ranks
	dir     string
	mode    batch.Input
	store   *checkpoint.Store

	source *batch.Source
	loop   *loop.Loop
	duties *duties
}

// newRun loads the initial state of the run into the model, and creates the pipeline and the training loop.
func newRun(
	ctx context.Context, p *plan.Plan, m *machine.Machine, s *session.Session, out *outputs, others *together.Ranks,
	dir string, mode batch.Input,
) (*run, error) {
	r := &run{
		outputs: out, plan: p, machine: m, session: s, ranks: others, dir: dir, mode: mode,
		store: checkpoint.NewStore(dir),
	}
	r.store.Reached = out.reached
	var job *event.Job
	if step := p.Progress().Step; step > 0 {
		job = out.bus.Begin(event.Work{Task: event.CatchingUp, Unit: "with step " + units.Thousands(step)})
	}
	defer job.End()
	progress, state, err := r.begin()
	if err != nil {
		return nil, err
	}
	p.Close() // so that the space of a checkpoint that is pruned later is freed
	r.source = p.Source()
	for _, line := range plan.EndsEarly(p.Players, p.Schedules(), r.source.Total()) {
		r.log.Warn(line)
	}
	if r.duties, err = newDuties(r, progress, state); err != nil {
		return nil, err
	}
	job.End()
	bundle := p.Bundle.Manifest
	began := event.Start{
		Dir: dir, Bundle: bundle.Name, Device: p.Device(), Metrics: bundle.Metrics(),
		Step: progress.Step, Total: r.source.Total(), Every: p.Config.LogEvery,
	}
	r.bus.Publish(&began) // the error of a sink ends the run at its first step
	r.loop, err = loop.New(loop.Config{
		Plan: p, Machine: m, Session: s, Source: r.source, Input: mode, Run: began, Progress: progress,
		Stop: r.console.Stop, Ranks: others, Duties: r.duties, Quarantine: r.duties.quarantine,
		Bus: r.bus, Log: r.log.Logger, Baselines: r.duties.baselines, Debug: r.debug, Trace: r.trace,
		Copied: r.duties.nans.Copied,
	})
	if err == nil {
		r.duties.speech, err = speech.Open(ctx, speech.Config{
			Plan: p, Session: s, Loop: r.loop, Dir: dir, Silent: mode.Measures(), Evaluations: r.duties.evaluations,
			Ranks: others, Stop: r.console.Stop, Bus: r.bus, Log: r.log.Logger,
		})
	}
	if err != nil {
		return nil, errors.Join(err, r.duties.close())
	}
	r.duties.probes = probes.Begin(r.loop, dir)
	r.served.Watch(r.loop)
	return r, nil
}

// begin restores weights, moments and progress from the checkpoint of the resumed run, or loads the weights of --init.
// A new run has no state.
func (r *run) begin() (train.Progress, *checkpoint.State, error) {
	start := &r.plan.Start
	if start.Weights != nil {
		return train.Progress{}, nil, r.session.Init(start.Weights, r.console.Out)
	}
	if start.Resumed == nil {
		return train.Progress{}, nil, session.Begin(r.session)
	}
	if r.ranks.Leads() {
		if err := r.store.Clean(); err != nil {
			return train.Progress{}, nil, err
		}
	}
	for _, s := range start.Damaged {
		r.log.Warn(s.Warning(), "checkpoint", s.Error())
	}
	if err := r.session.Restore(start); err != nil {
		return train.Progress{}, nil, err
	}
	fmt.Fprintf(r.console.Out, "resumed      %s\n%s", visible.Text(start.Resumed.Path), start.Change.Text())
	for _, c := range start.Change.Changes {
		r.log.Info("changed", "step", start.Change.Step, "name", c.Name, "from", c.From, "to", c.To)
	}
	for _, name := range start.Change.Unused {
		r.log.Warn("--allow " + name + ": nothing of it differs from the checkpoint, so it allows nothing")
	}
	p := r.plan.Progress()
	if start.Resumed.Averages == nil && r.plan.Config.EMA > 0 {
		fmt.Fprintf(r.console.Out, "average      begins with the weights of step %d: the checkpoint has none\n", p.Step)
	}
	if r.plan.Config.ResumeAt != "" && r.ranks.Leads() {
		removed, err := r.store.RemoveAfter(p.Step)
		if err != nil {
			return p, nil, err
		}
		if len(removed) > 0 {
			r.log.Warn(
				fmt.Sprintf("gone back to step %d: removed the lines and the checkpoints of later steps", p.Step),
				"checkpoints", removed)
		}
	}
	return p, &start.Resumed.State, nil
}
