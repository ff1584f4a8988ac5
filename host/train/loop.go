package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Progress is the progress of a run between two windows. A checkpoint contains it.
type Progress struct {
	// Step is the number of completed windows.
	Step int64
	// Epoch and Batch name the next batch.
	Epoch, Batch int
	// EvaluatedStep is the step of the last evaluation, 0 before the first.
	EvaluatedStep int64
	Best          *Best
	// Plateaus and EarlyStop are the states of the policy's schedules and early stop. Without Plateaus, no evaluation
	// was counted.
	Plateaus  []schedule.State
	EarlyStop schedule.Waiting
}

// Position is where the feed continues.
func (p Progress) Position() pipeline.Position {
	return pipeline.Position{Step: p.Step, Epoch: p.Epoch, Batch: p.Batch, EvaluatedStep: p.EvaluatedStep}
}

// Best is the evaluation with the lowest Value, which is the loss unless Policy.Judge says something else.
type Best struct {
	Step        int64
	Loss, Value float64
}

// Observer gets the events of a run, on the loop's goroutine. An error ends the run.
type Observer interface {
	// Batch is called for every training batch that was computed, while its slot is still held.
	Batch(d *pipeline.DeviceSlot)
	// Step and Evaluated are called between windows, when a checkpoint may be saved: weights and optimizer are those
	// after the step, even if a GPU is computing the gradients of the next one. The loop sets a step's Frames only
	// with Ranks.
	// It overwrites the step's slices in the next step.
	Step(s *event.Step) error
	// Evaluating is called before the first batch of an evaluation and after each, with the time at which it began.
	Evaluating(began time.Time, done int)
	Evaluated(e *event.Evaluation) error
}

// Policy has the settings of a run about its steps.
type Policy struct {
	Schedules []schedule.Schedule // of the players
	EarlyStop schedule.EarlyStop
	// Counted reports whether schedules and early stop use the evaluation after a step; nil means all. An evaluation
	// only because of the end of the run does not count: a longer run would not have it.
	Counted func(step int64) bool
	// Judge returns a number for an evaluation that is lower the better the evaluation is, and not finite for one that
	// is never the best; nil means the loss. Best, schedules and early stop use it. All ranks call it, before
	// Observer.Evaluated. If a stop has kept it from an answer, the evaluation has not taken place: a resumed run
	// repeats it.
	Judge func(e *event.Evaluation) float64
	// MaxSkipped windows in a row end the run with ErrNotFinite.
	MaxSkipped int
}

// Loop trains until the feed ends, Stop is closed, or something fails.
//
// The players of a model train in turn: the first one on each batch when it arrives, and after its update the next one
// on the same batches. So the batches of a window are held until the last player has trained on them.
//
// On a GPU it works one pass ahead, which is a batch of a player: it queues the gradients of a pass before it reads the
// result of the previous one, so that the GPU continues without waiting for the host. It queues the update of a pass
// after the result of the previous pass is known and before the result of this pass is known.
type Loop struct {
	Model      *Model
	Optimizers Optimizers // of the model's players
	Policy     Policy
	Feed       pipeline.Feed
	Observer   Observer
	// Stop, when closed, ends the run after the current window. A window that waits for its batch is abandoned: it has
	// changed nothing yet.
	Stop <-chan struct{}
	// Spent, if set, is called with the times of waiting, training, update and evaluation: "wait", "train",
	// "optimizer", "evaluate". On a GPU, "train" and "optimizer" are the times to queue the work, and "result" is the
	// wait for the result.
	Spent func(what string, b *pipeline.Batch, began, ended time.Time)
	// Ranks, if set, are the other processes that train the same model. Then Stop ends the run on all ranks after the
	// same window: each says with its gradients whether it wants to stop.
	Ranks Coordinator
	// Frames returns the valid target frames of a batch. It is required with Ranks, whose steps have those of all.
	Frames func(d *pipeline.DeviceSlot) int
	// Evaluated, if set, is called with the first batch of each evaluation, while its slot is held.
	Evaluated func(d *pipeline.DeviceSlot)
	// Delay, if set, is called in the time of each pass. Tests of what measures speed make training slow with it.
	Delay func()
	// Progress is the start of the run. The loop updates it; an Observer may read it.
	Progress Progress

	queued  pass
	held    []*pipeline.DeviceSlot // the batches of the window, if there are several players
	window  event.Step
	means   []mean // of the window, by player
	eval    evaluation
	before  boundary
	skipped int // consecutive windows
	tally   Tally
	stops   bool // a rank wants to stop
}

// evaluation is the one under way.
type evaluation struct {
	event.Evaluation
	mean  mean
	began time.Time
}

// boundary is the end of the previous window or evaluation.
type boundary struct{ host, device time.Time }

// ErrNotFinite means that the loss or the gradients are not finite. It has a hint.
var ErrNotFinite error = notFinite{}

type notFinite struct{}

func (notFinite) Error() string { return "loss or gradients are not finite" }

// Hint implements the interface of package hint.
func (notFinite) Hint() string {
	return "try a smaller --lr, a longer --warmup-steps or a smaller --grad-clip, and listen to the clips of the " +
		"skipped steps"
}

// Run trains. It locks its goroutine to its thread.
func (l *Loop) Run(ctx context.Context) (err error) {
	defer func() { err = l.because(err) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, end := l.stoppable(ctx)
	defer end()

	defer l.Model.Drain() // an error here has been returned before

	l.means, l.held = make([]mean, len(l.Optimizers)), nil
	if l.Progress.Plateaus == nil {
		l.Progress.Plateaus = make([]schedule.State, len(l.Optimizers))
	}
	l.begin()
	for !l.Policy.EarlyStop.Over(l.Progress.EarlyStop) {
		// If no batch is ready, the GPU will wait for one, but only after the queued work: the wait is counted from
		// then.
		if !l.Feed.Ready() {
			if err := l.idle(ctx); err != nil {
				return err
			}
		}
		began := time.Now()
		d, err := l.Feed.Acquire(ctx)
		if err != nil {
			if failed := l.awaitResult(ctx); failed != nil {
				return failed
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		l.spent("wait", &d.Batch, began, time.Now())
		if d.Batch.Eval {
			err = l.evaluate(ctx, d, began)
		} else {
			err = l.train(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin starts to measure a window. Nothing is being computed.
func (l *Loop) begin() {
	now := time.Now()
	l.before = boundary{now, now}
}

// end ends the window's time, on the host and on the device.
func (l *Loop) end(now, done time.Time) {
	l.window.Time = done.Sub(l.before.device)
	l.window.Train += l.window.Time - now.Sub(l.before.host) // the host's window begins and ends later
	l.before = boundary{now, done}
}

func (l *Loop) spent(what string, b *pipeline.Batch, began, ended time.Time) {
	if l.Spent != nil {
		l.Spent(what, b, began, ended)
	}
}

// pass is a batch that a player trains on.
type pass struct {
	slot   *pipeline.DeviceSlot // nil for none
	player int
}

// rate returns the learning rate of a player in a step, counted from 0.
func (l *Loop) rate(player int, step int64) float64 {
	return l.Policy.Schedules[player].LR(step, l.Progress.Plateaus[player].Reductions)
}

// train trains on one micro-batch: with the first player, and after the last micro-batch of the window with the others.
func (l *Loop) train(ctx context.Context, d *pipeline.DeviceSlot) error {
	next := pass{slot: d}
	// The time belongs to the window that ends next, even if the batch belongs to the one after.
	l.window.InputWait += l.Feed.LastWait()
	if len(l.Optimizers) == 1 {
		return l.pass(ctx, next)
	}
	l.held = append(l.held, d)
	last := d.Batch.Last
	if err := l.pass(ctx, next); err != nil || !last {
		return err
	}
	for next.player = 1; next.player < len(l.Optimizers); next.player++ {
		for _, next.slot = range l.held {
			if err := l.pass(ctx, next); err != nil {
				return err
			}
		}
	}
	l.held = l.held[:0]
	return nil
}

// pass queues the gradients of one micro-batch, and the update after the last one of the window.
func (l *Loop) pass(ctx context.Context, p pass) error {
	d, optimizer := p.slot, l.Optimizers[p.player]
	b := &d.Batch
	if p.player == len(l.Optimizers)-1 {
		l.count(d)
	}
	began := time.Now()
	if l.Delay != nil {
		l.Delay()
	}
	l.Model.SetScalars(d.Index, b)
	err := l.Model.Queue(p.player, d.Index, b.Bucket, b.Seed)
	took := time.Since(began)
	l.window.Train += took
	l.spent("train", b, began, began.Add(took))
	if err != nil {
		err = fmt.Errorf("step %d: %w", b.Step+1, err)
	} else {
		err = l.awaitResult(ctx)
	}
	if err != nil {
		l.Model.Drain() // it may be computing, and the copier must not write to a slot that is being read
		l.Feed.Release(d)
		return err
	}
	l.queued = p
	began = time.Now()
	err = optimizer.Accumulate(b.Micro == 0)
	l.window.Train += time.Since(began)
	if err == nil && b.Last {
		began = time.Now()
		err = optimizer.Step(l.rate(p.player, b.Step))
		took = time.Since(began)
		l.window.Optimize += took
		l.spent("optimizer", b, began, began.Add(took))
	}
	began = time.Now()
	err = errors.Join(err, l.Model.Fetch())
	l.window.Train += time.Since(began)
	if err != nil {
		return fmt.Errorf("step %d: %w", b.Step+1, err)
	}
	if l.Model.Async() {
		return nil
	}
	return l.awaitResult(ctx)
}

// awaitResult waits for the result of the queued pass, if any, and ends the window after its last one.
func (l *Loop) awaitResult(ctx context.Context) error {
	a := l.queued
	if a.slot == nil {
		return nil
	}
	l.queued = pass{}
	b, w := a.slot.Batch, &l.window
	began := time.Now()
	r, err := l.Model.Result()
	took := time.Since(began)
	if err != nil {
		l.Feed.Release(a.slot)
		return fmt.Errorf("step %d: %w", b.Step+1, err)
	}
	if l.Model.Async() {
		l.spent("result", &b, began, began.Add(took))
	}
	mean := &l.means[a.player]
	if b.Micro == 0 {
		mean.reset()
		w.Rows = w.Rows[:0]
	}
	w.Train += took
	mean.add(r)
	if a.player < len(l.Optimizers)-1 {
		return nil
	}
	for _, row := range b.Rows {
		if row >= 0 {
			w.Rows = append(w.Rows, row)
		}
	}
	l.Observer.Batch(a.slot)
	l.Feed.Release(a.slot) // b.Rows is not valid afterwards
	if !b.Last {
		return nil
	}
	if err := l.step(&b); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.stops {
		return exit.ErrInterrupted
	}
	return nil
}

// step ends the window.
func (l *Loop) step(b *pipeline.Batch) error {
	if err := l.complete(); err != nil {
		return fmt.Errorf("step %d: %w", b.Step+1, err)
	}
	w, last := &l.window, len(l.Optimizers)-1
	w.Step, w.Epoch, w.Bucket = b.Step+1, b.Epoch, b.Bucket
	w.Loss, w.Metrics = l.means[last].result(w.Metrics, l.Model.weighted)
	for i, player := range l.Model.owners {
		w.Metrics[i] = l.means[player].metric(i, l.Model.weighted)
	}
	w.Metrics = l.Model.appendScheduled(w.Metrics, b.Step, false)
	w.Own = w.Loss
	w.Loss = l.Optimizers.shared(w.Loss, w.Metrics)
	l.outcome(b.Step)
	l.takeTally()
	now := time.Now()
	done := now
	if timer := l.Model.device.Timer; timer != nil {
		w.GPUTrain, w.GPUOptimize, done = timer.takeWindow()
	}
	l.end(now, done)
	l.Progress.Step, l.Progress.Epoch, l.Progress.Batch = w.Step, b.Epoch, b.Index+1

	err := l.Observer.Step(w)
	w.InputWait, w.Train, w.Optimize = 0, 0, 0
	if err != nil {
		return err
	}
	if !w.Skipped {
		l.skipped = 0
		return nil
	}
	if l.skipped++; l.skipped >= l.Policy.MaxSkipped {
		return fmt.Errorf("%w: %d steps in a row were skipped, the last was step %d", ErrNotFinite, l.skipped, w.Step)
	}
	return nil
}

// outcome fills in what the updates of the window, a step that is counted from 0, have done.
func (l *Loop) outcome(step int64) {
	w := &l.window
	w.Skipped, w.Players = false, w.Players[:0]
	for i, o := range l.Optimizers {
		norm, updated := o.Outcome()
		w.GradNorm, w.LR = norm, l.rate(i, step) // the last player's stay
		w.Skipped = w.Skipped || !updated
		if len(l.Optimizers) > 1 {
			w.Players = append(w.Players,
				event.Player{Name: l.Model.players[i].name, LR: w.LR, GradNorm: norm, Skipped: !updated})
		}
	}
}

// isFinite reports whether a loss is finite. That of an evaluation of empty rows, or of a diverged model, is not.
func isFinite(loss float64) bool { return !math.IsNaN(loss) && !math.IsInf(loss, 0) }

// evaluate computes one batch of the validation set, and the result after the last one. The loop has waited for the
// batch since a time.
func (l *Loop) evaluate(ctx context.Context, d *pipeline.DeviceSlot, waited time.Time) error {
	defer l.Feed.Release(d)
	if err := l.awaitResult(ctx); err != nil {
		return err
	}
	b, e := &d.Batch, &l.eval
	if b.Index == 0 {
		l.eval.mean.reset()
		e.Samples, e.Time, e.began = 0, 0, waited
		l.Observer.Evaluating(waited, 0)
	}
	began := time.Now()
	l.Model.SetScalars(d.Index, b)
	r, err := l.Model.Evaluate(d.Index, b.Bucket)
	if err != nil {
		return fmt.Errorf("evaluation after step %d: %w", l.Progress.Step, err)
	}
	l.eval.mean.add(r)
	e.Samples += b.Samples()
	ended := time.Now()
	e.Time += ended.Sub(began)
	l.spent("evaluate", b, began, ended)
	if b.Index == 0 && l.Evaluated != nil {
		l.Evaluated(d)
	}
	l.Observer.Evaluating(e.began, b.Index+1)
	if !b.Last {
		return nil
	}
	stops, err := l.sumEvaluation()
	if err != nil {
		return fmt.Errorf("evaluation after step %d: %w", l.Progress.Step, err)
	}
	e.Step = l.Progress.Step
	e.Loss, e.Metrics = l.eval.mean.result(e.Metrics, false)
	e.Metrics = l.Model.appendScheduled(e.Metrics, 0, true)
	if err := l.judge(ctx, &e.Evaluation); err != nil {
		return err
	}
	err = l.Observer.Evaluated(&e.Evaluation)
	l.begin()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && stops {
		err = exit.ErrInterrupted
	}
	return err
}
