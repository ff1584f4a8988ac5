package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/gpu/nvml"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/debug"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/record"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/trace"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// drainTimeout bounds the end of a run, from the last step to the last plugin.
const drainTimeout = 15 * time.Second

// Run trains. It returns when the run is over and nothing of it is left but the run folder. ExitCode gives the
// exit status of its error, Hint what to do about it.
func Run(ctx context.Context, set *config.Set, console Console) error {
	return trainFed(ctx, set, console, batch.Overlapped)
}

// trainFed is Run with a way of feeding the model.
func trainFed(ctx context.Context, set *config.Set, console Console, how batch.Feeding) (err error) {
	began := time.Now()
	bus := event.NewBus()
	defer bus.Close()
	log := record.NewLog(func(w *event.Warning) { bus.Publish(w) })
	person := console.sink(bus.Snapshot)
	bus.Offer("console", person, func(text string) { log.Warn(text) })
	raw := console.Out
	console = console.through(bus)
	j := &job{set: set, cfg: &set.Config, log: log.Logger, feeding: how}
	starting, done := stoppable(ctx, console)
	defer done()
	if set.PrintConfig() {
		if err := j.openBundle(starting); err != nil {
			return exit.Refused(err)
		}
		_, err := io.WriteString(raw, set.YAML())
		return err
	}
	defer j.closeStart()
	if err := j.plan(starting); err != nil {
		return exit.Refused(err)
	}
	folder, err := claimRunFolder(set, began)
	if err != nil {
		return err
	}
	defer func() {
		// What was refused, or stopped before it began, leaves nothing. A plugin's last words and a list of bad clips
		// stay.
		code := exit.Code(err)
		folder.close(exit.IsRefusal(err) && (code == 2 || code == 3 || code == 130))
	}()
	dir := folder.path
	defer func() { err = errors.Join(err, bus.Close()) }() // while the folder is ours
	log.Open(folder.log)
	bus.Require(report.LogFile, log)
	if j.debug, err = debug.Open(j.cfg.DebugDir); err != nil {
		return exit.Refused(err)
	}
	defer func() {
		if cerr := j.debug.Close(); err == nil {
			err = cerr
		}
	}()
	if err := j.openTrace(); err != nil {
		return exit.Refused(err)
	}
	defer j.closeTrace()
	plan := j.record()
	io.WriteString(console.Out, plan.Banner(dir))
	j.warn(plan)
	defer func() {
		// The caller's context may be over; the plugins still get their time.
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if cerr := j.close(drain); err == nil {
			err = cerr
		}
	}()
	if err := j.openWatch(nvml.Open, func(m *event.Memory) { bus.Publish(m) }); err != nil {
		return exit.Refused(err)
	}
	if err := j.start(starting); err != nil {
		if cause := context.Cause(starting); cause != nil {
			return exit.Refused(cause) // what stopped the start, not what it was doing
		}
		return exit.Refused(j.tooLarge(starting, err, 0))
	}
	if err := report.ReplaceFile(filepath.Join(dir, config.RunFile), []byte(set.YAML())); err != nil {
		return err
	}
	r := &run{job: j, dir: dir, bus: bus, person: person, console: console, began: began, store: checkpoint.NewStore(dir)}
	if j.debug != nil {
		r.store.Reached = func(phase checkpoint.Phase) { j.debug.Reach(debug.Point{Phase: string(phase)}) }
	}
	if err := r.prepare(starting); err != nil {
		return exit.Refused(err)
	}
	return r.train(ctx)
}

// stoppable returns a context that ends with train.ErrInterrupted when the console's Stop is closed, which it confirms.
func stoppable(ctx context.Context, console Console) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-console.Stop:
			fmt.Fprintln(console.Err, "stopping at the next step; once more to stop at once")
			cancel(train.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-over }
}

// run is a job that trains.
type run struct {
	*job
	dir     string
	bus     *event.Bus
	person  *report.Console
	console Console
	began   time.Time
	store   *checkpoint.Store

	schedule train.Schedule
	source   *batch.Source
	path     *batch.Path
	loop     *train.Loop
	observer *observer
	timeline *trace.Timeline
}

func (r *run) train(ctx context.Context) error {
	progress, state, err := r.resume()
	if err != nil {
		return exit.Refused(err)
	}
	r.closeStart() // a checkpoint that is pruned later is to give its space back
	if err := r.build(progress, state); err != nil {
		return exit.Refused(err)
	}
	defer r.observer.close()
	return r.finish(r.drive(ctx))
}

// drive runs pipeline and loop until one ends. Nothing of them runs after it.
func (r *run) drive(ctx context.Context) error {
	pipeCtx, stopPipe := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.path.Pipeline.Run(pipeCtx) // its failure comes back through Acquire
	}()
	r.warmUp(ctx)
	r.bus.Publish(&event.Phase{Phase: event.Training})
	r.watch.Start()
	err := r.loop.Run(ctx)
	stopPipe()
	r.path.Close()
	<-done
	if werr := r.watch.Close(); werr != nil {
		r.log.Warn(werr.Error()) // the run is as good without
	}
	return err
}

// resume restores weights, moments and progress from the newest checkpoint of the run that goes on. A new run has
// no state.
func (r *run) resume() (train.Progress, *checkpoint.State, error) {
	if r.cfg.Resume == "" {
		return train.Progress{}, nil, r.init()
	}
	if err := r.store.Clean(); err != nil {
		return train.Progress{}, nil, err
	}
	for _, s := range r.damaged {
		r.log.Warn("damaged checkpoint passed over", "checkpoint", s.Error())
	}
	p, err := r.restore()
	if err != nil {
		return p, nil, err
	}
	fmt.Fprintf(r.console.Out, "resumed      %s\n", r.resumed.Path)
	return p, &r.resumed.State, nil
}

// restore gives model and optimizer what the checkpoint holds, and returns how far it is. It writes nothing.
func (r *run) restore() (train.Progress, error) {
	if err := r.pull(); err != nil {
		return train.Progress{}, err
	}
	if err := r.resumed.Restore(r.model.Weights(), r.optimizer.Moments()); err != nil {
		return train.Progress{}, err
	}
	if err := errors.Join(r.model.Push(), r.optimizer.Push()); err != nil {
		return train.Progress{}, err
	}
	s := &r.resumed.State
	r.optimizer.Steps = s.OptimizerStep
	p := train.Progress{Step: s.Step, Epoch: s.Epoch, Batch: s.Batch, EvaluatedStep: s.EvaluatedStep}
	if s.Best != nil {
		p.Best = &train.Best{Step: s.Best.Step, Loss: s.Best.Loss}
	}
	return p, nil
}

// pull brings what the host sees of weights and moments up to date.
func (r *run) pull() error { return errors.Join(r.model.Pull(), r.optimizer.Pull()) }

// init takes over weights by name where --init asks for it, and lists what matched.
func (r *run) init() error {
	if r.cfg.Init == "" {
		return nil
	}
	from := r.weights
	m, err := from.into(r.model.Weights())
	if err != nil {
		return fmt.Errorf("--init %s: %w", from.path, err)
	}
	if err := r.model.Push(); err != nil {
		return err
	}
	r.log.Info("init", "from", from.path, "taken", m.taken, "other_shape", m.reshaped, "not_there", m.missing, "not_used", m.unused)
	fmt.Fprint(r.console.Out, m.text(from.path))
	if len(m.taken) == 0 {
		return hint.Errorf("tensors are matched by name and shape", "--init %s: no tensor of it fits the bundle %s", from.path, r.bundle.Manifest.Name)
	}
	return nil
}

// build makes pipeline and loop.
func (r *run) build(progress train.Progress, state *checkpoint.State) (err error) {
	c := r.cfg
	r.source = &batch.Source{Train: r.data.Train.Plan, Accumulate: c.Accumulate, EvalEvery: c.EvalEvery, Epochs: c.Epochs, MaxSteps: c.MaxSteps, Seed: c.Seed, World: ranks}
	if r.data.Val != nil {
		r.source.Val = r.data.Val.Plan
	}
	r.source.Start(progress)
	r.schedule = train.Schedule{Name: c.Schedule, BaseLR: c.LR, WarmupSteps: c.WarmupSteps, TotalSteps: r.source.Total()}
	if state != nil {
		r.schedule.TotalSteps = state.Schedule.TotalSteps // the course was fixed when the run began
		if total := r.source.Total(); c.Schedule == "cosine" && total > r.schedule.TotalSteps {
			r.log.Warn(fmt.Sprintf("the cosine schedule ends at step %d, where the run was to end when it began: the learning rate is 0 from there to step %d (begin a new run with --init %s)",
				r.schedule.TotalSteps, total, r.dir))
		}
	}
	if r.observer, err = newObserver(r, progress, state); err != nil {
		return err
	}
	return r.connect(r.observer, r.observer.quarantine, r.observer.seen, progress)
}

// connect makes the batches' path and the loop from source and schedule. o gets every step, q the rows that cannot be used, and
// seen, if it is not nil, every batch while it is in the ring.
func (r *run) connect(o train.Observer, q *batch.Quarantine, seen func(*pipeline.Batch, *ring.Layout, []byte) error, progress train.Progress) (err error) {
	c := r.cfg
	r.loop = &train.Loop{
		Model: r.model, Optimizer: r.optimizer, Schedule: r.schedule, Observer: o,
		Stop: r.console.Stop, MaxSkipped: c.MaxSkipped, Progress: progress,
	}
	hooks := batch.Hooks{Copied: seen, Observer: func(cfg pipeline.Config) pipeline.Observer { return r.draw(cfg, r.loop) }}
	if r.debug != nil {
		hooks.Copy = func() { r.debug.Reach(debug.Point{Phase: "copy"}) }
	}
	r.path, err = batch.New(batch.Config{
		Source: r.source, Feeding: r.feeding, Data: r.data, BatchSize: c.BatchSize,
		Depths: batch.Depths{Ring: c.BufferSize, Device: r.slots, Workers: c.NumWorkers, Prefetch: r.prefetch},
		Ring:   r.ring, Layouts: r.layouts, Inputs: r.bundle.Manifest.Inputs, Stages: r.pipeline, Pools: r.pools,
		Model: r.model, GPU: r.device.Context, Quarantine: q, Log: r.log, Hooks: hooks,
	})
	if err != nil {
		return err
	}
	r.loop.Feed = r.path.Feed
	return nil
}

// warmUp lets the pipeline fill: until the prefetch target is ready, at most for --model-start-delay.
func (r *run) warmUp(ctx context.Context) {
	began := time.Now()
	delay := time.NewTimer(time.Duration(r.cfg.ModelStartDelay * float64(time.Second)))
	defer delay.Stop()
	r.bus.Publish(&event.Phase{Phase: event.WarmingUp})
	fmt.Fprintln(r.console.Out, "waiting for the data pipeline to warm up")
	select {
	case <-r.path.Pipeline.Warm():
	case <-delay.C:
	case <-r.console.Stop:
	case <-ctx.Done():
	}
	fmt.Fprintf(r.console.Out, "training starting now: %d batches ready after %.2f s\n\n", r.path.Pipeline.Finished(), time.Since(began).Seconds())
}
