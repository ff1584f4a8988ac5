package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Coordinator lets the ranks of a run decide what none may decide alone. All ranks make the same calls in the same
// order, on the loop's goroutine, and all get the same bits.
type Coordinator interface {
	// Leads reports whether this is rank 0.
	Leads() bool
	// Err returns why a rank is missing; nil if none is. After that, what the GPU computes together is wrong.
	Err() error
	// Total replaces each value by its sum over the ranks.
	Total(values []float64) error
	// Decide replaces each value by that of rank 0.
	Decide(values []float64) error
}

// stoppable returns a context that ends when Stop is closed. With other ranks it does not: one that stops alone would
// leave the others waiting. The caller must call the function that is returned, which ends the context.
func (l *Loop) stoppable(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done, stop := make(chan struct{}), l.Stop
	if l.Ranks != nil {
		stop = nil
	}
	go func() {
		defer close(done)
		select {
		case <-stop:
			cancel(exit.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// idle lets the GPU do what is queued, while no batch is ready. Where a batch is queued with sums over the ranks, of
// its gradients or of the totals of the step, the result stays until the next batch is queued: the ranks decide on it
// together, so all of them must have queued the same then.
func (l *Loop) idle(ctx context.Context) error {
	if l.queued.slot == nil || !l.Model.sumsInGraphs() && l.Model.batchScalars.ranks == nil {
		return l.awaitResult(ctx)
	}
	began := time.Now()
	err := l.Model.done.Synchronize()
	l.window.Train += time.Since(began)
	return err
}

// because returns why the loop ended with an error: if a rank is missing, what failed without it is an effect of that.
func (l *Loop) because(err error) error {
	if err == nil || errors.Is(err, exit.ErrInterrupted) {
		return err
	}
	if lost := l.complete(); lost != nil && !errors.Is(err, lost) {
		return fmt.Errorf("step %d: %w", l.Progress.Step+1, lost)
	}
	return err
}

// complete returns an error if a rank is missing, so that what was computed together is no step.
func (l *Loop) complete() error {
	if l.Ranks == nil {
		return nil
	}
	return l.Ranks.Err()
}

// count counts a batch that the last player trains on, and with the last one of a window tells the other ranks.
func (l *Loop) count(d *pipeline.DeviceSlot) {
	if l.Ranks == nil {
		return
	}
	if d.Batch.Micro == 0 {
		l.tally = Tally{}
	}
	l.tally.Samples += float32(d.Batch.Samples())
	l.tally.Frames += float32(l.Frames(d))
	l.tally.LeftOut += float32(len(d.Batch.LeftOut))
	if !d.Batch.Last {
		return
	}
	if l.stopping() {
		l.tally.Stops = 1
	}
	l.Optimizers.SetTally(l.tally)
}

// takeTally takes the sum of what all ranks have set for the window.
func (l *Loop) takeTally() {
	if l.Ranks != nil {
		w, all := &l.window, l.Optimizers.TallySum()
		w.Others, w.Frames, l.stops = int(all.Samples)-len(w.Rows), int(all.Frames), all.Stops != 0
		w.LeftOut = int(all.LeftOut)
	}
}

// stopping reports whether Stop is closed.
func (l *Loop) stopping() bool {
	select {
	case <-l.Stop:
		return true
	default:
		return false
	}
}

// sumEvaluation makes the result of this rank's part of an evaluation that of all ranks. stops reports whether one of
// them wants to stop.
func (l *Loop) sumEvaluation() (stops bool, err error) {
	if l.Ranks == nil {
		return false, nil
	}
	m, asks := &l.eval.mean, 0.0
	if l.stopping() {
		asks = 1
	}
	values := append([]float64{m.weight, m.loss, float64(l.eval.Samples), asks}, m.metrics...)
	if err := l.Ranks.Total(values); err != nil {
		return false, err
	}
	m.weight, m.loss, l.eval.Samples = values[0], values[1], int(values[2])
	copy(m.metrics, values[4:])
	return values[3] != 0, nil
}

// value returns the number by which an evaluation is judged. That of rank 0 counts.
func (l *Loop) value(ctx context.Context, e *event.Evaluation) (value float64, err error) {
	value = e.Loss
	var cut error // what has kept Judge from an answer
	if l.Policy.Judge != nil {
		if value = l.Policy.Judge(e); !isFinite(value) && (l.Ranks == nil || l.Ranks.Leads()) {
			cut = l.stopped(ctx)
		}
	}
	if l.Ranks == nil {
		return value, cut
	}
	decided := []float64{value, 0}
	if cut != nil {
		decided[1] = 1
	}
	if err := l.Ranks.Decide(decided); err != nil {
		return 0, fmt.Errorf("evaluation after step %d: %w", e.Step, err)
	}
	if cut != nil {
		return 0, cut // this is rank 0
	}
	if decided[1] != 0 {
		return 0, exit.ErrInterrupted
	}
	return decided[0], nil
}
