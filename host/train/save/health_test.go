package save

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// steps marks the steps from first to last as not normal.
func (r *run) diverges(first, last int64) {
	r.odd = map[int64]bool{}
	for step := first; step <= last; step++ {
		r.odd[step] = true
	}
}

// TestNothingIsRemovedWhileItDiverges: checkpoints of finite weights are saved, but none makes room for them, and
// afterwards the last good one stays beside those of --keep-last.
func TestNothingIsRemovedWhileItDiverges(t *testing.T) {
	r := newRun(t, Config{Steps: 1, KeepLast: 2})
	r.train(t, 5)
	if want := []int64{4, 5}; !slices.Equal(r.store.steps, want) {
		t.Fatalf("checkpoints %v, want %v", r.store.steps, want)
	}
	r.store.taken()
	r.diverges(6, 8) // by the update of step 5
	r.train(t, 8)
	if got, want := r.store.taken(), []string{"save 6", "save 7", "save 8"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if good, err := r.Good(); err != nil || !slices.Equal(good, []int64{4}) {
		t.Errorf("good %v, %v; want the checkpoint before the last normal step", good, err)
	}
	if err := r.Last(); err != nil || !slices.Contains(r.store.steps, 4) {
		t.Errorf("at the end: %v, checkpoints %v", err, r.store.steps)
	}
	r.odd = nil
	r.train(t, 9) // good again: those of the steps 7 and 8
	if want := []int64{8, 9}; !slices.Equal(r.store.steps, want) {
		t.Errorf("checkpoints %v, want %v", r.store.steps, want)
	}
}

// TestLastGoodIsKept: with --keep-last 1 the new checkpoint has not shown yet that it is good, so the one before it
// stays. An evaluation shows it, too.
func TestLastGoodIsKept(t *testing.T) {
	r := newRun(t, Config{Steps: 2, KeepLast: 1, Total: 100})
	r.train(t, 6)
	if want := []int64{4, 6}; !slices.Equal(r.store.steps, want) {
		t.Errorf("checkpoints %v, want %v", r.store.steps, want)
	}
	r.Evaluated(6)
	if err := r.Last(); err != nil || !slices.Equal(r.store.steps, []int64{6}) {
		t.Errorf("%v: checkpoints %v, want the last", err, r.store.steps)
	}
	best := newRun(t, Config{Steps: 2, KeepLast: 1})
	best.train(t, 1)
	best.at.now.Step = 2
	best.at.now.Best = &checkpoint.Best{Step: 2}
	if err := best.Best(); err != nil {
		t.Fatal(err)
	}
	best.train(t, 6)
	if want := []int64{2, 4, 6}; !slices.Equal(best.store.steps, want) {
		t.Errorf("checkpoints %v, want the best, the last good and the last: %v", best.store.steps, want)
	}
}

// TestGoodOfAResumedRun: the last normal step of the processes before counts.
func TestGoodOfAResumedRun(t *testing.T) {
	resumed := &checkpoint.Checkpoint{Path: "step-9", State: checkpoint.State{Step: 9}}
	r := newRun(t, Config{Steps: 1, KeepLast: 1, Resumed: resumed, Steady: 7})
	r.store.steps = []int64{3, 6, 9}
	r.diverges(10, 12)
	r.train(t, 12)
	if want := []int64{3, 6, 9, 10, 11, 12}; !slices.Equal(r.store.steps, want) {
		t.Errorf("checkpoints %v, want %v", r.store.steps, want)
	}
	if good, _ := r.Good(); !slices.Equal(good, []int64{6, 3}) {
		t.Errorf("good %v, want 6 and 3", good)
	}
}

// TestGoodIsKeptUntilALaterOne: losses that rose and stay there are normal after a while, so old checkpoints are
// removed again. The last of before stays, also if the run goes on in another process and if evaluations follow, until
// a later one is good.
func TestGoodIsKeptUntilALaterOne(t *testing.T) {
	r := newRun(t, Config{Steps: 10, KeepLast: 2})
	r.train(t, 100)
	r.odd, r.risen = map[int64]bool{}, map[int64]bool{}
	for step := int64(101); step <= 300; step++ {
		r.odd[step], r.risen[step] = step < 150, true
	}
	r.train(t, 300)
	r.Evaluated(300)
	if want := []int64{90, 290, 300}; !slices.Equal(r.store.steps, want) {
		t.Errorf("checkpoints %v, want %v", r.store.steps, want)
	}
	again := newRun(t, Config{Steps: 10, KeepLast: 2, Steady: 100, Resumed: &checkpoint.Checkpoint{
		Path: "step-300", State: checkpoint.State{Step: 300},
	}})
	again.store.steps, again.risen = r.store.steps, map[int64]bool{}
	for step := int64(301); step <= 320; step++ {
		again.risen[step] = true
	}
	again.train(t, 320)
	if good, err := again.Good(); err != nil || !slices.Equal(good, []int64{90}) {
		t.Errorf("good %v, %v; want the last of before", good, err)
	}
	if again.train(t, 340); !slices.Equal(again.store.steps, []int64{330, 340}) {
		t.Errorf("checkpoints %v after it came down", again.store.steps)
	}
}

// TestFullDiskWhileItDiverges: the last good checkpoint never makes room.
func TestFullDiskWhileItDiverges(t *testing.T) {
	r := newRun(t, Config{Steps: 1, KeepLast: 9})
	r.train(t, 3)
	r.diverges(4, 9)
	r.store.fails = []error{syscall.ENOSPC, syscall.ENOSPC, syscall.ENOSPC}
	r.train(t, 4) // makes room: 1 goes, the good one stays, 3 is the last
	if want := []int64{2, 3}; !slices.Equal(r.store.steps, want) {
		t.Errorf("checkpoints %v, want %v", r.store.steps, want)
	}
	r.store.fails = []error{nil, syscall.ENOSPC, syscall.ENOSPC}
	r.train(t, 6)
	if !slices.Contains(r.store.steps, 2) {
		t.Errorf("checkpoints %v: the last good one is gone", r.store.steps)
	}
}

// TestNotFiniteIsNotSaved: weights, averages or moments that are not finite end the run, in all its processes, whatever
// the reason of the save. Nothing is written or removed, also on a full disk.
func TestNotFiniteIsNotSaved(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, set := range map[string]func(*fakeTraining){
		"weight":  func(f *fakeTraining) { f.weights = values("w", 1, nan) },
		"average": func(f *fakeTraining) { f.weights = append(values("w", 1, 2), values("w", 1, inf)...) },
		"moment":  func(f *fakeTraining) { f.moments = values("exp_avg_sq.w", 1, inf) },
	} {
		for _, follows := range []bool{false, true} {
			r := newRun(t, Config{Steps: 2, KeepLast: 1, Follows: follows})
			r.train(t, 3)
			r.store.taken()
			r.store.fails = []error{syscall.ENOSPC}
			set(r.at)
			r.at.now.Step, r.at.now.Best = 4, &checkpoint.Best{Step: 4}
			for why, save := range map[event.Reason]func() error{
				event.Periodic: func() error { return r.Step(4, true, true) }, event.Best: r.Best, event.Last: r.Last,
				"rescue": func() error { _, err := r.Write(); return err },
			} {
				bad, ok := errors.AsType[*NotFiniteError](save())
				if !ok || bad.Step != 4 || bad.Err.Element != 1 {
					t.Errorf("%s, %s: %v", name, why, bad)
				}
			}
			if got := r.store.taken(); len(got) > 0 || r.Saved() == 4 {
				t.Errorf("%s: calls %q", name, got)
			}
		}
	}
}
