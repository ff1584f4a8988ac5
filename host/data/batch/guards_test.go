package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestDamageRebuildsEverythingInFlight: what was filled before the ring was damaged is rebuilt, also where no guard
// shows it.
func TestDamageRebuildsEverythingInFlight(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{{Name: "mel", DType: manifest.F32, Shape: []int{3, 5, 2}}}, nil)
	r, err := ring.Create(4, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := newGuards(r, []ring.Layout{layout})
	var batches []*pipeline.Batch
	for slot := range 3 { // slot 3 has had no batch, and so no guards
		batches = append(batches, &pipeline.Batch{Slot: slot})
		g.begin(batches[slot])
	}
	for _, b := range batches {
		if err := g.check(b, nil); err != nil {
			t.Fatalf("slot %d: %v", b.Slot, err)
		}
	}
	clear(r.Slot(1))
	const want = "batch must be rebuilt: a ring slot was damaged: byte 0 after the end of tensor \"mel\" was " +
		"overwritten"
	if err := g.check(batches[1], nil); !errors.Is(err, pipeline.ErrRebuild) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, slot := range []int{0, 1, 2} {
		if err := g.check(batches[slot], nil); !errors.Is(err, pipeline.ErrRebuild) {
			t.Errorf("slot %d, begun before: %v", slot, err)
		}
		g.begin(batches[slot])
		if err := g.check(batches[slot], nil); err != nil {
			t.Errorf("slot %d, begun after it: %v", slot, err)
		}
	}
}

// TestDamageOfSharedRing: where other ranks have batches at the same processes, a damage is blamed on none of them, and
// what another rank finds has the batches in flight rebuilt, without an end of processes.
func TestDamageOfSharedRing(t *testing.T) {
	r := fakeCommon(t, 3)
	a := &fakePool{workers: 1}
	r.guards.fed, r.guards.pools, r.guards.names = true, []supervise.Processes{a}, []string{"a"}
	a.call = func(slot int) (supervise.Result, error) {
		clear(r.ring.Slot(slot))
		return supervise.Result{}, nil
	}
	damaged, other := &pipeline.Batch{Slot: 0}, &pipeline.Batch{Slot: 1}
	r.guards.begin(damaged)
	if _, _, err := fakeRunner(r, a, "mix").Process(t.Context(), damaged); !errors.Is(err, pipeline.ErrRebuild) {
		t.Fatal(err)
	}
	if len(a.kicked) != 1 || !strings.HasPrefix(fmt.Sprint(a.kicked[0]), "all a ring slot was damaged: ") {
		t.Errorf("kicked %q", a.kicked)
	}
	r.guards.begin(other)
	(&Path{guards: r.guards}).Damaged()
	if err := r.guards.check(other, nil); !errors.Is(err, pipeline.ErrRebuild) || len(a.kicked) != 1 {
		t.Errorf("%v, kicked %q", err, a.kicked)
	}
	r.guards.begin(other)
	if err := r.guards.check(other, nil); err != nil {
		t.Error(err)
	}
}

// TestDamageIsBlamedOnNoOtherProcess: a damage that is found in the slot that a process returns is that process's
// only when no other one had a batch since the slot was whole.
func TestDamageIsBlamedOnNoOtherProcess(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers int
		same    bool // the other batch is with the same plugin
		before  bool // it has left it when this one comes
		lost    bool // its process is lost while this one is there
		all     bool
	}{
		{"a batch with another plugin", 1, false, false, false, true},
		{"a batch with another plugin before", 1, false, true, false, false},
		{"a batch with the same process", 1, true, false, false, false},
		{"a batch with a process of the same plugin", 2, true, false, false, true},
		{"a batch with the process before", 1, true, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := fakeCommon(t, 3)
			returns := func(int) (supervise.Result, error) { return supervise.Result{}, nil }
			a, b := &fakePool{workers: tt.workers, call: returns}, &fakePool{workers: 1, call: returns}
			r.guards.pools, r.guards.names = []supervise.Processes{a, b}, []string{"a", "b"}
			other := b
			if tt.same {
				other = a
			}
			batch, second := &pipeline.Batch{Slot: 0}, &pipeline.Batch{Slot: 1}
			r.guards.begin(batch)
			r.guards.begin(second)
			r.guards.enter(second.Slot, other)
			if tt.before {
				r.guards.leave(second.Slot, false)
			}
			a.call = func(slot int) (supervise.Result, error) {
				if tt.lost {
					r.guards.leave(second.Slot, true)
				}
				clear(r.ring.Slot(slot))
				return supervise.Result{}, nil
			}
			if _, _, err := fakeRunner(r, a, "mix").Process(t.Context(), batch); !errors.Is(err, pipeline.ErrRebuild) {
				t.Fatal(err)
			}
			const damage = `byte 0 after the end of tensor "mel" was overwritten`
			want := [2]string{"[{0 0} stage mix: " + damage + "]", "[]"}
			if tt.all {
				want[0] = "[all a ring slot was damaged: " + damage + "; it was one of the plugins a, b]"
				want[1] = want[0]
			}
			if got := [2]string{fmt.Sprint(a.kicked), fmt.Sprint(b.kicked)}; got != want {
				t.Errorf("kicked\n%q, want\n%q", got, want)
			}
		})
	}
}
