package save

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

func TestReasons(t *testing.T) {
	asked := make(chan struct{}, 1)
	var confirmed bytes.Buffer
	r := newRun(t, Config{Steps: 4, KeepLast: 3, Asked: asked, Confirm: &confirmed})
	if r.Saved() != 0 {
		t.Error("a new run is resumable")
	}
	if got, want := r.train(t, 5), []string{"4 periodic"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if r.Saved() != 4 || r.Current() {
		t.Errorf("at step 5: step %d saved, current %v; want 4, false", r.Saved(), r.Current())
	}
	asked <- struct{}{}
	if got, want := r.train(t, 6), []string{"6 asked"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if got, want := confirmed.String(), "saved step-6; training continues\n"; got != want {
		t.Errorf("confirmation %q, want %q", got, want)
	}
	r.at.now.EvaluatedStep, r.at.now.Best = 6, &checkpoint.Best{Step: 6}
	if r.Current() {
		t.Error("the last checkpoint lacks the evaluation, but is current")
	}
	r.store.taken()
	if err := r.Best(); err != nil {
		t.Fatal(err)
	}
	if got, want := r.store.taken(), []string{"save 6", "prune 3 [step-6]"}; !slices.Equal(got, want) {
		t.Errorf("calls at the best evaluation %q, want %q", got, want)
	}
	r.at.now.Step = 7
	if err := r.Last(); err != nil || !r.Current() {
		t.Errorf("at the end: %v, current %v; want true", err, r.Current())
	}
	if got, want := r.store.taken(), []string{"save 7", "prune 3 [step-6]"}; !slices.Equal(got, want) {
		t.Errorf("calls at the end %q, want %q", got, want)
	}
	if err := r.cfg.Bus.Flush(); err != nil || r.sink.saving != 4 {
		t.Errorf("%v: %d of 4 checkpoints were announced", err, r.sink.saving)
	}
}

// TestBestOfARunThatSavesAtItsEnd: a run without periodic checkpoints saves none at an evaluation.
func TestBestOfARunThatSavesAtItsEnd(t *testing.T) {
	r := newRun(t, Config{})
	if err := r.Best(); err != nil || len(r.store.calls) > 0 {
		t.Errorf("error %v, calls %q", err, r.store.calls)
	}
}

// TestLaterCheckpoints: after a resume, the first checkpoint replaces damaged ones of later steps. No other one looks
// for them.
func TestLaterCheckpoints(t *testing.T) {
	for _, tt := range []struct {
		name    string
		resumed *checkpoint.Checkpoint
		want    []string
	}{
		{"new run", nil, []string{"save 11", "save 12"}},
		{
			"resumed", &checkpoint.Checkpoint{Path: "step-10", State: checkpoint.State{Step: 10}},
			[]string{"save 11", "remove after 11", "save 12"},
		},
	} {
		r := newRun(t, Config{Steps: 1, Resumed: tt.resumed})
		r.at.now.Step = 10
		if (r.Saved() > 0) != (tt.resumed != nil) {
			t.Errorf("%s: step %d saved", tt.name, r.Saved())
		}
		r.train(t, 12)
		if got := r.store.taken(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: calls %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestFollowerSavesNothing: one process of a run saves.
func TestFollowerSavesNothing(t *testing.T) {
	r := newRun(t, Config{Steps: 1, Follows: true})
	r.train(t, 2)
	if err := r.Last(); err != nil || len(r.store.calls) > 0 {
		t.Errorf("error %v, calls %q", err, r.store.calls)
	}
}

// TestFullDisk: if the disk is full, checkpoints are removed, the oldest first, but neither the last nor the best one.
// If that does not suffice, the run continues without the checkpoint.
func TestFullDisk(t *testing.T) {
	resumed := &checkpoint.Checkpoint{Path: "step-3", State: checkpoint.State{Step: 3, Best: &checkpoint.Best{Step: 1}}}
	r := newRun(t, Config{Steps: 2, KeepLast: 5, Resumed: resumed})
	r.store.steps = []int64{0, 1, 2, 3}
	r.store.fails = []error{syscall.ENOSPC, syscall.EDQUOT}
	if got, want := r.train(t, 4), []string{"4 periodic"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if got, want := r.store.taken(), []string{
		"save 4", "remove 0", "save 4", "remove 2", "save 4", "remove after 4", "prune 5 [step-1]",
	}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if n := strings.Count(r.log.String(), "removed a checkpoint to make room"); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, &r.log)
	}

	r.log.Reset()
	full := func() []error { return []error{syscall.ENOSPC, syscall.ENOSPC} }
	r.store.fails = append(full(), syscall.ENOSPC) // at step 6, after the removal of 3, and at step 7
	if got, want := r.train(t, 8), []string{"6 periodic failed", "8 periodic"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if got, want := r.store.taken(), []string{
		"save 6", "remove 3", "save 6", "save 7", "save 8", "prune 5 [step-1]",
	}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if n := strings.Count(r.log.String(), "the disk is full: the run continues without this checkpoint"); n != 1 {
		t.Errorf("%d warnings for one fault, want 1:\n%s", n, &r.log)
	}
	r.store.steps, r.store.fails = nil, full()
	if err := r.Last(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the last checkpoint: %v, want %v", err, syscall.ENOSPC)
	}
}

// TestFullDiskAtTheEnd: a checkpoint of the last step that does not fit is no warning, since Last tries again, and
// fails.
func TestFullDiskAtTheEnd(t *testing.T) {
	r := newRun(t, Config{Steps: 2, Total: 4})
	full := []error{syscall.ENOSPC, syscall.ENOSPC}
	r.train(t, 2)
	r.store.fails = full
	if got, want := r.train(t, 4), []string{"4 periodic failed"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if r.log.Len() > 0 {
		t.Errorf("warnings at the last step:\n%s", &r.log)
	}
	if err := r.Last(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the last checkpoint: %v, want %v", err, syscall.ENOSPC)
	}
}

// TestLastWaits: the last checkpoint of a run waits for room on the disk, and says so once.
func TestLastWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, Config{Steps: 9, Total: 4, Patience: files.NewPatience(time.Minute, nil)})
		r.train(t, 4)
		r.store.fails = []error{syscall.ENOSPC, syscall.ENOSPC, syscall.EIO}
		began := time.Now()
		if err := r.Last(); err != nil || time.Since(began) < 250*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if n := strings.Count(r.log.String(), "the last checkpoint waits for the disk"); n != 1 {
			t.Errorf("%d warnings, want 1:\n%s", n, &r.log)
		}
	})
}

// TestLastIsSavedOnce: an old checkpoint that cannot be removed does not make the last one wait, and a run that is to
// stop does not either.
func TestLastIsSavedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, Config{Steps: 9, Total: 4, KeepLast: 1, Patience: files.NewPatience(time.Minute, nil)})
		r.train(t, 4)
		r.store.stuck = syscall.EIO
		began := time.Now()
		if err := r.Last(); !errors.Is(err, syscall.EIO) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if got, want := r.store.taken(), []string{"save 4", "prune 1 []"}; !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
	stop := make(chan struct{})
	close(stop)
	r := newRun(t, Config{Steps: 9, Total: 4, Patience: files.NewPatience(time.Minute, stop)})
	r.train(t, 4)
	r.store.fails = []error{syscall.ENOSPC, syscall.ENOSPC, syscall.ENOSPC, syscall.ENOSPC}
	if err := r.Last(); !errors.Is(err, syscall.ENOSPC) || strings.Contains(r.log.String(), "waits") {
		t.Errorf("%v\n%s", err, &r.log)
	}
}

// TestOldOnesStay: a checkpoint that cannot be removed for now ends no run, except at its end.
func TestOldOnesStay(t *testing.T) {
	r := newRun(t, Config{Steps: 2, KeepLast: 1})
	r.store.stuck = syscall.EIO
	if got, want := r.train(t, 4), []string{"2 periodic", "4 periodic"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if !strings.Contains(r.log.String(), "could not be removed") {
		t.Errorf("log %q", r.log.String())
	}
	if err := r.Last(); !errors.Is(err, syscall.EIO) {
		t.Errorf("at the end: %v", err)
	}
}

// TestKeepAll: --keep-last 0 removes no checkpoint, even if the disk is full.
func TestKeepAll(t *testing.T) {
	r := newRun(t, Config{Steps: 2})
	r.store.steps, r.store.fails = []int64{0, 1}, []error{syscall.ENOSPC}
	if got, want := r.train(t, 2), []string{"2 periodic failed"}; !slices.Equal(got, want) {
		t.Errorf("checkpoints %q, want %q", got, want)
	}
	if got, want := r.store.taken(), []string{"save 2"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// TestErrors: a fault of the disk passes, any other error ends the run.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		ends bool
	}{{syscall.EIO, false}, {syscall.EACCES, true}} {
		r := newRun(t, Config{Steps: 1, KeepLast: 1})
		r.store.steps, r.store.fails = []int64{0}, []error{tt.err}
		r.at.now.Step = 1
		if err := r.Step(1, true, true); (err != nil) != tt.ends || tt.ends && !errors.Is(err, tt.err) {
			t.Errorf("%v: error %v, ends the run: want %v", tt.err, err, tt.ends)
		}
		if got, want := r.store.taken(), []string{"save 1"}; !slices.Equal(got, want) {
			t.Errorf("%v: calls %q, want %q", tt.err, got, want)
		}
	}
}

// closed is a sink whose lines cannot be made durable.
type closed struct{ published }

func (*closed) Sync() error { return syscall.EIO }

var _ event.Durable = new(closed)

// TestLinesFirst: no checkpoint is saved if the lines of its steps cannot be made durable, and the save is not tried
// again.
func TestLinesFirst(t *testing.T) {
	r := newRun(t, Config{Steps: 1})
	r.cfg.Bus.Require("metrics.jsonl", new(closed))
	if err := r.Step(1, true, true); !errors.Is(err, syscall.EIO) || len(r.store.calls) > 0 {
		t.Errorf("error %v, want %v; calls %q", err, syscall.EIO, r.store.calls)
	}
	if err := r.cfg.Bus.Flush(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the bus has %v, want %v", err, syscall.EIO)
	}
}
