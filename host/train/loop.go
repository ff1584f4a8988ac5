package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/schedule"
)

// Feed hands out batches in the order of the plan, as *pipeline.Pipeline does: Acquire waits for the next
// and returns io.EOF after the last. Two may be held at a time, where Ready tells that Acquire will not wait.
type Feed interface {
	Ready() bool
	Acquire(ctx context.Context) (*pipeline.DeviceSlot, error)
	Release(*pipeline.DeviceSlot)
	LastWait() time.Duration
}

// Progress is where a run stands between two windows. A checkpoint holds it.
type Progress struct {
	// Step is the number of windows that are over.
	Step int64
	// Epoch and Batch name the next batch.
	Epoch, Batch int
	// EvaluatedStep is the step of the last evaluation, 0 before the first.
	EvaluatedStep int64
	Best          *Best
	// Plateau and EarlyStop are what the policy's schedule and early stop have seen.
	Plateau   schedule.State
	EarlyStop schedule.Waiting
}

// Best is the evaluation with the lowest loss.
type Best struct {
	Step int64
	Loss float64
}

// Observer is called with what happens, on the loop's goroutine. An error stops the run.
type Observer interface {
	// Batch is called for every training batch that was computed, while its slot is still held.
	Batch(d *pipeline.DeviceSlot)
	// Step and Evaluated are called between windows, where a checkpoint may be taken: weights and optimizer are those
	// after the step, though a GPU may be computing the next one's gradients already. The loop does not know a step's
	// Frames, and overwrites its slices in the next step.
	Step(s *event.Step) error
	Evaluated(e *event.Evaluation) error
}

// Policy is what a run decides about its steps.
type Policy struct {
	Schedule  schedule.Schedule
	EarlyStop schedule.EarlyStop
	// Counted reports whether the schedule and the early stop look at the evaluation after a step; nil means at all. An evaluation
	// that is only made because the run ends there is not counted: a longer run does not have it.
	Counted func(step int64) bool
	// MaxSkipped windows in a row end the run with ErrNotFinite.
	MaxSkipped int
}

// Loop trains until the feed ends, Stop is closed, or something fails.
//
// On a GPU it works one batch ahead: it queues the gradients of a batch before it reads the result of the previous
// batch, so that the GPU continues without waiting for the host. It queues the update of a batch after the result of
// the previous batch is known and before the result of this batch is known.
type Loop struct {
	Model     *Model
	Optimizer *Optimizer
	Policy    Policy
	Feed      Feed
	Observer  Observer
	// Stop, when closed, ends the run at the next window. A window that waits for its batch is abandoned: it has
	// changed nothing yet.
	Stop <-chan struct{}
	// Spent, if set, is called with how long the loop waited for a batch, trained, updated and evaluated: "wait",
	// "train", "optimizer", "evaluate". On a GPU to train and to update is to queue that, and "result" is the wait for
	// it.
	Spent func(what string, b *pipeline.Batch, began, ended time.Time)
	// Progress is where to begin. The loop keeps it up to date; an Observer may read it.
	Progress Progress

	ahead   ahead
	window  event.Step
	mean    mean
	eval    event.Evaluation
	before  boundary
	skipped int // windows in a row
}

// boundary is when the window before, or the evaluation, ended.
type boundary struct{ host, device time.Time }

// The ways a run ends before the feed does.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrNotFinite   = errors.New("training does not stay finite")
)

// Run is the loop. It locks its goroutine to its thread.
func (l *Loop) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer func() { cancel(nil); <-done }()
	go func() {
		defer close(done)
		select {
		case <-l.Stop:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()

	defer l.Model.Drain() // what fails here has failed before

	l.begin()
	for !l.Policy.EarlyStop.Over(l.Progress.EarlyStop) {
		// Where no batch is ready the GPU will have to wait for one: only after what is queued does that wait begin.
		if !l.Feed.Ready() {
			if err := l.settle(ctx); err != nil {
				return err
			}
		}
		began := time.Now()
		d, err := l.Feed.Acquire(ctx)
		if err != nil {
			if failed := l.settle(ctx); failed != nil {
				return failed
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		l.spent("wait", &d.Batch, began, time.Now())
		if d.Batch.Eval {
			err = l.evaluate(ctx, d)
		} else {
			err = l.train(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin begins to measure a window. Nothing is being computed.
func (l *Loop) begin() {
	now := time.Now()
	l.before = boundary{now, now}
}

// end ends the window's time, for the host and for the device.
func (l *Loop) end(now, done time.Time) {
	l.window.Time = done.Sub(l.before.device)
	l.window.Train += l.window.Time - now.Sub(l.before.host) // the host's window began later and ends later
	l.before = boundary{now, done}
}

func (l *Loop) spent(what string, b *pipeline.Batch, began, ended time.Time) {
	if l.Spent != nil {
		l.Spent(what, b, began, ended)
	}
}

// ahead is a batch whose result is not known yet.
type ahead struct {
	slot *pipeline.DeviceSlot // nil for none
	lr   float64
}

// train queues one micro-batch, and the update when it is the window's last.
func (l *Loop) train(ctx context.Context, d *pipeline.DeviceSlot) error {
	b, next := &d.Batch, ahead{slot: d, lr: l.Policy.Schedule.LR(d.Batch.Step, l.Progress.Plateau.Reductions)}
	began := time.Now()
	err := l.Model.Queue(d.Index, b.Bucket, b.Seed)
	took := time.Since(began)
	// What takes time belongs to the window that ends next, though the batch may be of the one after.
	l.window.InputWait += l.Feed.LastWait()
	l.window.Train += took
	l.spent("train", b, began, began.Add(took))
	if err != nil {
		err = fmt.Errorf("step %d: %w", b.Step+1, err)
	} else {
		err = l.settle(ctx)
	}
	if err != nil {
		l.Model.Drain() // it may be computing, and the copier is not to write to a slot that is read
		l.Feed.Release(d)
		return err
	}
	l.ahead = next
	began = time.Now()
	err = l.Optimizer.Accumulate(b.Micro == 0)
	l.window.Train += time.Since(began)
	if err == nil && b.Last {
		began = time.Now()
		err = l.Optimizer.Step(next.lr)
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
	return l.settle(ctx)
}

// settle waits for the result of the batch that is queued, if any, and ends the window when it is the last.
func (l *Loop) settle(ctx context.Context) error {
	a := l.ahead
	if a.slot == nil {
		return nil
	}
	l.ahead = ahead{}
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
	if b.Micro == 0 {
		l.mean.reset()
		w.Rows = w.Rows[:0]
	}
	w.Train += took
	l.mean.add(r)
	for _, row := range b.Rows {
		if row >= 0 {
			w.Rows = append(w.Rows, row)
		}
	}
	l.Observer.Batch(a.slot)
	l.Feed.Release(a.slot) // with it goes b.Rows
	if !b.Last {
		return nil
	}
	if err := l.step(&b, a.lr); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// step ends the window.
func (l *Loop) step(b *pipeline.Batch, lr float64) error {
	w, updated := &l.window, false
	w.Step, w.Epoch, w.Bucket, w.LR = b.Step+1, b.Epoch, b.Bucket, lr
	w.Loss, w.Metrics = l.mean.result(w.Metrics)
	if loss, ok := l.Optimizer.window.sharedLoss(); ok {
		w.Loss = loss
	}
	w.GradNorm, updated = l.Optimizer.Outcome()
	w.Skipped = !updated
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
	if updated {
		l.skipped = 0
		return nil
	}
	if l.skipped++; l.skipped >= l.Policy.MaxSkipped {
		return fmt.Errorf("%w: %d steps in a row were skipped, the last was step %d", ErrNotFinite, l.skipped, w.Step)
	}
	return nil
}

// isFinite tells a loss from what an evaluation of empty rows, or of a model that has run away, gives.
func isFinite(loss float64) bool { return !math.IsNaN(loss) && !math.IsInf(loss, 0) }

// evaluate computes one batch of the validation set, and the result when it is the last.
func (l *Loop) evaluate(ctx context.Context, d *pipeline.DeviceSlot) error {
	defer l.Feed.Release(d)
	if err := l.settle(ctx); err != nil {
		return err
	}
	b, e := &d.Batch, &l.eval
	if b.Index == 0 {
		l.mean.reset()
		e.Samples, e.Time = 0, 0
	}
	began := time.Now()
	r, err := l.Model.Evaluate(d.Index, b.Bucket)
	if err != nil {
		return fmt.Errorf("evaluation after step %d: %w", l.Progress.Step, err)
	}
	l.mean.add(r)
	for _, row := range b.Rows {
		if row >= 0 {
			e.Samples++
		}
	}
	ended := time.Now()
	e.Time += ended.Sub(began)
	l.spent("evaluate", b, began, ended)
	if !b.Last {
		return nil
	}
	e.Step = l.Progress.Step
	e.Loss, e.Metrics = l.mean.result(e.Metrics)
	l.Progress.EvaluatedStep = e.Step
	if best := l.Progress.Best; isFinite(e.Loss) && (best == nil || e.Loss < best.Loss) {
		l.Progress.Best = &Best{e.Step, e.Loss}
	}
	if p := &l.Policy; p.Counted == nil || p.Counted(e.Step) {
		p.Schedule.Observe(&l.Progress.Plateau, e.Step, e.Loss)
		p.EarlyStop.Observe(&l.Progress.EarlyStop, e.Loss)
	}
	err = l.Observer.Evaluated(e)
	l.begin()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}
