package loop

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
)

const ms = time.Millisecond

// source has batches without end.
type source struct{ next int }

func (s *source) Next(b *pipeline.Batch) bool {
	b.Index, b.Step = s.next, int64(s.next)
	s.next++
	return true
}

// decoder takes 10 ms for a batch, and counts the calls that have not returned.
type decoder struct {
	err     error
	running atomic.Int32
}

func (d *decoder) Decode(context.Context, int, *pipeline.Batch) ([]pipeline.Rejected, error) {
	d.running.Add(1)
	defer d.running.Add(-1)
	time.Sleep(10 * ms)
	return nil, d.err
}

type card struct{}

func (card) Copy(int, *pipeline.Batch) error { return nil }

// feed has no batch for the trainer: it ends after some time with err, or when its context does.
type feed struct {
	after time.Duration
	err   error
}

func (feed) Ready() bool { return true }
func (f feed) Acquire(ctx context.Context) (*pipeline.DeviceSlot, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(f.after):
		return nil, f.err
	}
}
func (feed) Release(*pipeline.DeviceSlot) {}
func (feed) LastWait() time.Duration      { return 0 }

// phases are the phases that a bus has published, with the time since the start of the test.
type phases struct {
	began time.Time
	all   []event.RunPhase
	at    []time.Duration
}

func (p *phases) Take(events []event.Event) error {
	for _, e := range events {
		if e, ok := e.(*event.Phase); ok {
			p.all, p.at = append(p.all, e.Phase), append(p.at, time.Since(p.began))
		}
	}
	return nil
}
func (p *phases) Close() error { return nil }

// runCase is a run that ends in some way, and when.
type runCase struct {
	name           string
	prefetch       int
	delay          time.Duration // --model-start-delay
	stop, cancel   time.Duration // 0 for never
	feed           *feed         // nil for the pipeline's own
	decode         error
	trained        int64         // of five steps
	val            *dataset.Plan // that is evaluated after the last one
	training, ends time.Duration
	err            error
}

// TestRun: training begins when the prefetch target is ready, after the delay, or at a request to stop, whichever is
// first; after Run nothing of the pipeline runs, whatever ended it; and a run that has done everything is not
// interrupted.
func TestRun(t *testing.T) {
	broken, gone := errors.New("broken"), errors.New("gone")
	const never = time.Hour
	for _, tt := range []runCase{
		{
			name: "prefetch", prefetch: 4, delay: time.Second, feed: &feed{7 * ms, io.EOF}, training: 40 * ms,
			ends: 47 * ms,
		},
		{name: "delay", prefetch: 4, delay: 25 * ms, feed: &feed{7 * ms, io.EOF}, training: 25 * ms, ends: 32 * ms},
		{name: "no delay", prefetch: 4, feed: &feed{7 * ms, io.EOF}, ends: 7 * ms},
		{
			name: "stop in the warm-up", prefetch: 4, delay: time.Second, stop: 12 * ms, feed: &feed{never, nil},
			training: 12 * ms, ends: 12 * ms, err: exit.ErrInterrupted,
		},
		{
			name: "stop in training", prefetch: 1, delay: time.Second, stop: 55 * ms, feed: &feed{never, nil},
			training: 10 * ms, ends: 55 * ms, err: exit.ErrInterrupted,
		},
		{
			name: "stop before the last step", prefetch: 1, stop: 15 * ms, trained: 4, feed: &feed{never, nil},
			ends: 15 * ms, err: exit.ErrInterrupted,
		},
		{
			name: "stop after the last step", prefetch: 1, stop: 15 * ms, trained: 5, feed: &feed{never, nil},
			ends: 15 * ms,
		},
		{
			name: "stop before the evaluation", prefetch: 1, stop: 15 * ms, trained: 5, val: new(dataset.Plan),
			feed: &feed{never, nil}, ends: 15 * ms, err: exit.ErrInterrupted,
		},
		{
			name: "end of the context", prefetch: 4, delay: time.Second, cancel: 5 * ms, feed: &feed{never, nil},
			training: 5 * ms, ends: 5 * ms, err: gone,
		},
		{
			name: "failure of the trainer", prefetch: 1, delay: time.Second, feed: &feed{7 * ms, broken},
			training: 10 * ms, ends: 17 * ms, err: broken,
		},
		{
			name: "failure of the pipeline", prefetch: 4, delay: time.Second, decode: broken, training: 10 * ms,
			ends: 10 * ms, err: broken,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				decoding := &decoder{err: tt.decode}
				pipe, err := pipeline.New(pipeline.Config{
					Source: new(source), Decoder: decoding, Device: card{}, RingSlots: 6, DeviceSlots: 3,
					Prefetch: tt.prefetch,
				})
				if err != nil {
					t.Fatal(err)
				}
				stop := make(chan struct{})
				l := &Loop{
					Path:     &batch.Path{Pipeline: pipe, Feed: pipe},
					reporter: new(reporter),
					Train:    &train.Loop{Model: new(train.Model), Feed: pipe, Stop: stop},
					cfg: Config{
						Plan:    &plan.Plan{Config: &config.Config{ModelStartDelay: tt.delay.Seconds()}},
						Machine: new(machine.Machine),
						Source:  &batch.Source{Train: new(dataset.Plan), Val: tt.val, Accumulate: 1, MaxSteps: 5},
						Bus:     event.NewBus(), Stop: stop, Log: slog.New(slog.DiscardHandler),
					},
				}
				l.Train.Progress.Step = tt.trained
				if tt.feed != nil {
					l.Train.Feed = *tt.feed
				}
				seen := &phases{began: time.Now()}
				l.cfg.Bus.Require("phases", seen)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, func() { close(stop) })
				}
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(gone) })
				}
				if err := l.Run(ctx); !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				// A decoder's call that has begun ends before Run does.
				n, took := decoding.running.Load(), time.Since(seen.began)
				if n != 0 || took < tt.ends || took > tt.ends+10*ms {
					t.Errorf("ended after %v with %d running calls, want %v to %v with 0", took, n, tt.ends,
						tt.ends+10*ms)
				}
				if err := l.cfg.Bus.Close(); err != nil {
					t.Error(err)
				}
				want := []event.RunPhase{event.WarmingUp, event.Training}
				if !slices.Equal(seen.all, want) || seen.at[0] != 0 || seen.at[1] != tt.training {
					t.Errorf("phases %v at %v, want %v at 0 and %v", seen.all, seen.at, want, tt.training)
				}
			})
		})
	}
}
