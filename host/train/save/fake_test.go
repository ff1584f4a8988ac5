package save

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// fakeStore is a store in memory. It records its calls.
type fakeStore struct {
	steps []int64
	fails []error // of the next saves; nil succeeds
	stuck error   // of Prune
	calls []string
}

func (f *fakeStore) called(format string, a ...any) {
	f.calls = append(f.calls, fmt.Sprintf(format, a...))
}

// taken returns the calls since the last one of taken.
func (f *fakeStore) taken() []string {
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fakeStore) Save(_ context.Context, s checkpoint.State, _, _ []checkpoint.Tensor) (string, error) {
	f.called("save %d", s.Step)
	if len(f.fails) > 0 {
		err := f.fails[0]
		if f.fails = f.fails[1:]; err != nil {
			return "", err
		}
	}
	if !slices.Contains(f.steps, s.Step) {
		f.steps = append(f.steps, s.Step)
	}
	return f.Path(s.Step), nil
}

func (f *fakeStore) Steps() ([]int64, error)            { return f.steps, nil }
func (f *fakeStore) Path(step int64) string             { return fmt.Sprintf("step-%d", step) }
func (*fakeStore) Sound([]int64) *checkpoint.Checkpoint { return nil }

func (f *fakeStore) Kept(step int64) string { return f.Path(step) }

func (f *fakeStore) Remove(step int64) error {
	f.called("remove %d", step)
	f.steps = slices.DeleteFunc(f.steps, func(s int64) bool { return s == step })
	return nil
}

func (f *fakeStore) RemoveAfter(step int64) ([]int64, error) {
	f.called("remove after %d", step)
	return nil, nil
}

func (f *fakeStore) Prune(keep int, paths ...string) error {
	f.called("prune %d %v", keep, paths)
	if f.stuck != nil {
		return f.stuck
	}
	for i := len(f.steps) - 1; i >= 0; i-- {
		if slices.Contains(paths, f.Path(f.steps[i])) {
			continue
		}
		if keep--; keep < 0 {
			f.steps = slices.Delete(f.steps, i, i+1)
		}
	}
	return nil
}

// fakeTraining is a run at a state.
type fakeTraining struct {
	now              checkpoint.State
	weights, moments []checkpoint.Tensor
}

func (f *fakeTraining) State() checkpoint.State { return f.now }
func (f *fakeTraining) Tensors() (weights, moments []checkpoint.Tensor, _ error) {
	return f.weights, f.moments, nil
}

// published is a sink that keeps the checkpoints, and counts those that were about to be saved.
type published struct {
	checkpoints []*event.Checkpoint
	saving      int
}

func (p *published) Take(events []event.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *event.Checkpoint:
			p.checkpoints = append(p.checkpoints, e)
		case *event.Work:
			if e.Task == event.Saving && !e.Ended {
				p.saving++
			}
		}
	}
	return nil
}
func (*published) Close() error { return nil }

// run is a run with a Saver.
type run struct {
	*Saver
	at    *fakeTraining
	store *fakeStore
	log   bytes.Buffer
	sink  published
	odd   map[int64]bool // the steps that are not normal
	risen map[int64]bool // those that are normal and not steady
}

// newRun returns a run with these settings.
func newRun(t *testing.T, c Config) *run {
	t.Helper()
	r := &run{at: new(fakeTraining), store: new(fakeStore)}
	c.Training, c.Store, c.Bus, c.Log = r.at, r.store, event.NewBus(), slog.New(slog.NewTextHandler(&r.log, nil))
	c.Spent = func(_, _ time.Time) {}
	if c.Total == 0 {
		c.Total = 1000
	}
	if c.Confirm == nil {
		c.Confirm = io.Discard
	}
	c.Bus.Require("test", &r.sink)
	t.Cleanup(func() { c.Bus.Close() })
	if c.Resumed != nil {
		r.at.now = c.Resumed.State
	}
	r.Saver = New(c)
	return r
}

// train trains up to a step, and returns the checkpoints of these steps.
func (r *run) train(t *testing.T, to int64) (saved []string) {
	t.Helper()
	if err := r.cfg.Bus.Flush(); err != nil { // the bus delivers in a goroutine of its own
		t.Fatal(err)
	}
	r.sink.checkpoints = nil
	for r.at.now.Step < to {
		r.at.now.Step++
		if err := r.Step(
			r.at.now.Step, !r.odd[r.at.now.Step], !r.odd[r.at.now.Step] && !r.risen[r.at.now.Step],
		); err != nil {
			t.Fatalf("step %d: %v", r.at.now.Step, err)
		}
	}
	if err := r.cfg.Bus.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.sink.checkpoints {
		text := fmt.Sprintf("%d %s", c.Step, c.Reason)
		if c.Err != nil {
			text += " failed"
		}
		saved = append(saved, text)
	}
	return saved
}

// values returns a tensor of values.
func values(name string, all ...float32) []checkpoint.Tensor {
	t := checkpoint.Tensor{Name: name, Shape: []int{len(all)}}
	for _, v := range all {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return []checkpoint.Tensor{t}
}
