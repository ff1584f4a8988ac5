package health

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// run is a run in virtual time that a Judge sees.
type run struct {
	*testing.T
	*Judge
}

func (r *run) tell(events ...event.Event) { r.Take(events) }

// work passes a time before each part of a work.
func (r *run) work(task event.Task, parts int, each time.Duration) {
	w := &event.Work{Task: task, Unit: "/home/me/secret.csv", Of: parts, Began: time.Now()}
	for w.Done = 0; w.Done <= parts; w.Done++ {
		r.tell(w)
		time.Sleep(each)
		r.alive(true)
	}
	w.Ended = true
	r.tell(w)
}

// train makes steps of a duration.
func (r *run) train(steps int, each time.Duration) {
	for range steps {
		time.Sleep(each)
		r.alive(true)
		r.tell(&event.Step{Step: r.step + 1, Times: event.Times{Time: each}})
	}
}

func (r *run) alive(want bool) {
	r.Helper()
	line, got := r.Alive()
	if got != want || strings.Contains(line, "secret") || strings.Contains(line, "\n") {
		r.Fatalf("alive is %v: %q", got, line)
	}
}

// hangs: a run that does nothing from now on is alive for a time, and not a second longer.
func (r *run) hangs(limit time.Duration) {
	r.Helper()
	time.Sleep(limit)
	r.alive(true)
	time.Sleep(time.Second)
	r.alive(false)
}

// in makes a run that trains, of 1000 steps.
func in(t *testing.T, of func(r *run)) {
	synctest.Test(t, func(t *testing.T) { of(&run{t, New()}) })
}

func begin(r *run) {
	r.tell(&event.Start{Total: 1000}, &event.Phase{Phase: event.WarmingUp}, &event.Phase{Phase: event.Training})
}

// What takes long and is no hung run: a compilation, the first step, an evaluation, speech, a checkpoint.
func TestAliveWhileAnythingIsDone(t *testing.T) {
	in(t, func(r *run) {
		r.work(event.Reading, 100, 10*time.Minute)
		r.work(event.Compiling, 0, 29*time.Minute)
		begin(r)
		r.train(1, 29*time.Minute)
		r.train(50, 100*time.Millisecond)
		r.work(event.Evaluating, 40, 10*time.Minute)
		r.work(event.Speaking, 4, 10*time.Minute)
		r.work(event.Saving, 0, 25*time.Minute)
		r.train(30, time.Second)
		r.tell(&event.Phase{Phase: event.Ending})
		r.work(event.Saving, 0, 25*time.Minute)
		time.Sleep(25 * time.Minute)
		r.alive(true)
	})
}

// The limit of a step follows the longest of the last 20, that of a part of a work the longest of its kind.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		until func(r *run)
		limit time.Duration
	}{
		"preparing":      {func(r *run) {}, 30 * time.Minute},
		"the first step": {begin, 30 * time.Minute},
		"short steps": {func(r *run) {
			begin(r)
			r.train(100, 50*time.Millisecond)
		}, 5 * time.Minute},
		"long steps": {func(r *run) {
			begin(r)
			r.train(3, time.Minute)
		}, 20 * time.Minute},
		"one long step of the last 20": {func(r *run) {
			begin(r)
			r.train(1, time.Minute)
			r.train(19, time.Second)
		}, 20 * time.Minute},
		"one long step before the last 20": {func(r *run) {
			begin(r)
			r.train(1, time.Minute)
			r.train(20, time.Second)
		}, 5 * time.Minute},
		"after an evaluation": {func(r *run) {
			begin(r)
			r.train(20, time.Second)
			r.work(event.Evaluating, 3, 10*time.Minute)
		}, 5 * time.Minute},
		"a slow kind of work": {func(r *run) {
			r.work(event.Evaluating, 3, 10*time.Minute)
			r.tell(&event.Work{Task: event.Evaluating, Of: 3, Began: time.Now()})
		}, 200 * time.Minute},
		"another kind of work": {func(r *run) {
			r.work(event.Evaluating, 3, 10*time.Minute)
			r.tell(&event.Work{Task: event.Saving, Began: time.Now()})
		}, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { in(t, func(r *run) { c.until(r); r.hangs(c.limit) }) })
	}
}

// A work that tells again and again what it has told is no progress, and nor are other events.
func TestNoProgress(t *testing.T) {
	in(t, func(r *run) {
		w := &event.Work{Task: event.Filling, Done: 2, Of: 3, Began: time.Now()}
		r.tell(w)
		for range 30 {
			time.Sleep(time.Minute)
			r.alive(true)
			r.tell(w, &event.Warning{Text: "slow"}, &event.Memory{})
		}
		time.Sleep(time.Second)
		r.alive(false)
		w.Done++
		r.tell(w)
		r.alive(true)
	})
}

func TestLines(t *testing.T) {
	in(t, func(r *run) {
		says := func(want string, ready bool) {
			t.Helper()
			if line, got := r.Ready(); line != want || got != ready {
				t.Errorf("ready is %v: %q, want %q", got, line, want)
			}
		}
		says("preparing", false)
		r.tell(&event.Work{Task: event.Compiling, Unit: "kernels", Began: time.Now()})
		says("preparing, compiling", false)
		r.tell(&event.Work{Task: event.Compiling, Ended: true})
		begin(r)
		says("training, step 0 of 1000", false)
		r.train(2, time.Second)
		says("training, step 2 of 1000", true)
		r.tell(&event.Work{Task: event.Evaluating, Done: 3, Of: 40, Began: time.Now()})
		says("training, step 2 of 1000, evaluating 3/40", true)
		time.Sleep(1500 * time.Millisecond)
		if line, _ := r.Alive(); line != "training, step 2 of 1000, evaluating 3/40; progress 2s ago, limit 30m0s" {
			t.Error(line)
		}
		time.Sleep(time.Hour)
		want := "no progress for 1h0m2s, limit 30m0s: training, step 2 of 1000, evaluating 3/40"
		if line, _ := r.Alive(); line != want {
			t.Error(line)
		}
		r.tell(&event.Work{Task: event.Evaluating, Ended: true}, &event.Phase{Phase: event.Ending})
		says("ending, step 2 of 1000", false)
	})
}
