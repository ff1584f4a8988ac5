package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// TestOneRing: each rank has slots of its own in one memory, from a page on, and a call of it is for them.
func TestOneRing(t *testing.T) {
	var mu sync.Mutex
	called := map[string]int{} // the slot of the whole ring by the clip
	pool := &fakePool{call: func(_ context.Context, req supervise.Request) (supervise.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		called[req.ClipIDs[0]] = req.Slot
		return supervise.Result{}, nil
	}}
	_, feeds, plugins := machine(t, 3, pool)
	whole, next := feeds[0].Owner.Whole, 0
	if whole.SlotSize() < slotSize || whole.SlotSize()%os.Getpagesize() != 0 || whole.Slots() != 2+3+4 {
		t.Fatalf("%d slots of %d bytes", whole.Slots(), whole.SlotSize())
	}
	for rank, f := range feeds {
		if f.Ring.Slots() != slots+rank {
			t.Fatalf("rank %d has %d slots", rank, f.Ring.Slots())
		}
		for slot := range f.Ring.Slots() {
			f.Ring.Slot(slot)[7] = byte(1 + next)
			if got := whole.Slot(next)[7]; got != byte(1+next) {
				t.Errorf("slot %d of rank %d is not slot %d of all: %d", slot, rank, next, got)
			}
			clip := fmt.Sprint(rank, slot)
			if _, err := plugins[rank][0].Call(t.Context(),
				supervise.Request{Slot: slot, ClipIDs: []string{clip}}); err != nil || called[clip] != next {
				t.Errorf("rank %d calls for slot %d: %d, want %d; %v", rank, slot, called[clip], next, err)
			}
			next++
		}
	}
	if n := plugins[2][0].Workers(); n != 3 {
		t.Errorf("a guest knows of %d processes", n)
	}
}

// TestCalls: what a call carries, and all that it may come to, is the same for a guest as for the owner.
func TestCalls(t *testing.T) {
	failed := supervise.CrashLoop("mix", "too often", errors.New("a fault"))
	outcomes := []struct {
		res supervise.Result
		err error
	}{
		{res: supervise.Result{
			Busy: 3 * time.Millisecond, Process: supervise.ProcessID{Worker: 2, Generation: 5},
			Draws: []json.RawMessage{nil, json.RawMessage(`{"gain":1}`), nil},
		}},
		{res: supervise.Result{Bad: []supervise.BadRow{{Row: 1, Reason: "silent"}}}},
		{err: &supervise.PluginError{
			Plugin: "mix", Exit: "signal: killed", LastStderr: "oh\n", Kicked: true,
			Err: fmt.Errorf("%w: it ended", supervise.ErrLost),
		}},
		{err: &supervise.PluginError{Plugin: "mix", Err: fmt.Errorf("stage mix %w: no", supervise.ErrFailed)}},
		{err: failed},
		{err: supervise.Violation("mix", hint.Errorf("try", "a rule"))},
		{err: fmt.Errorf("plugin mix: %w", supervise.ErrClosed)},
		{err: &supervise.PluginError{Plugin: "mix", Err: fmt.Errorf("no restart: %w", supervise.ErrChanged)}},
		{err: hint.Errorf("do", "another error")},
	}
	var got supervise.Request
	pool := &fakePool{call: func(_ context.Context, req supervise.Request) (supervise.Result, error) {
		got = req
		return outcomes[req.Bucket].res, outcomes[req.Bucket].err
	}}
	was := lastWords
	t.Cleanup(func() { lastWords = was })
	lastWords = 10 * time.Millisecond // no one says more
	_, feeds, plugins := machine(t, 2, pool)
	if feeds[0].Guest != nil || feeds[1].Owner != nil {
		t.Fatal("the first rank is the owner")
	}
	for i, want := range outcomes {
		req := supervise.Request{
			Instance: 4, Slot: 1, Bucket: i, Epoch: 2, Step: -1, Order: 1 << 40, RowKeys: make([]byte, 48),
			ClipIDs: []string{"a/1", "", "b/2"}, Report: true,
			Sources: []*stagepb.Source{{Clip: "a/1", Start: 5, End: 9}, {}, {Clip: "b/2", End: 1 << 40}},
		}
		res, err := plugins[1][0].Call(t.Context(), req)
		req.Slot += slots
		if got.Sources[2].GetEnd() != 1<<40 || got.Sources[0].GetClip() != "a/1" {
			t.Errorf("sources %v", got.Sources)
		}
		if got.Sources, req.Sources = nil, nil; !reflect.DeepEqual(got, req) {
			t.Errorf("the plugin gets %+v, want %+v", got, req)
		}
		if !reflect.DeepEqual(res, want.res) {
			t.Errorf("%+v, want %+v", res, want.res)
		}
		if (err == nil) != (want.err == nil) || err == nil {
			continue
		}
		if err.Error() != want.err.Error() || exit.Hint(err) != exit.Hint(want.err) ||
			exit.Code(err) != exit.Code(want.err) {
			t.Errorf("%v (%s), want %v (%s)", err, exit.Hint(err), want.err, exit.Hint(want.err))
		}
		for _, kind := range []error{
			supervise.ErrLost, supervise.ErrFailed, supervise.ErrCrashLoop, supervise.ErrViolation, supervise.ErrClosed,
			supervise.ErrChanged,
		} {
			if errors.Is(err, kind) != errors.Is(want.err, kind) {
				t.Errorf("%v is not as %v: %v", err, want.err, kind)
			}
		}
		a, _ := errors.AsType[*supervise.PluginError](err)
		b, ok := errors.AsType[*supervise.PluginError](want.err)
		if ok && (a == nil || a.Kicked != b.Kicked || a.Exit != b.Exit || a.LastStderr != b.LastStderr ||
			a.Why() != b.Why()) {
			t.Errorf("%+v, want %+v", a, b)
		}
	}
}

// blocking is a pool whose calls for clip "wait" end with their context, which ended counts.
func blocking(started chan<- string, ended chan<- error) *fakePool {
	return &fakePool{call: func(ctx context.Context, req supervise.Request) (supervise.Result, error) {
		if req.ClipIDs[0] != "wait" {
			return supervise.Result{Busy: 1}, nil
		}
		started <- req.ClipIDs[0]
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return supervise.Result{}, fmt.Errorf("plugin x: %w", context.Cause(ctx))
	}}
}

// TestCancel: the end of a context ends the call in the owner, and is the reason. Other calls go on.
func TestCancel(t *testing.T) {
	started, ended := make(chan string, 1), make(chan error, 1)
	_, _, plugins := machine(t, 2, blocking(started, ended))
	why := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	outcome := make(chan error, 1)
	go func() {
		_, err := plugins[1][0].Call(ctx, supervise.Request{ClipIDs: []string{"wait"}})
		outcome <- err
	}()
	<-started
	if _, err := plugins[1][0].Call(t.Context(), supervise.Request{ClipIDs: []string{"go"}}); err != nil {
		t.Error("beside a call that waits: ", err)
	}
	end(why)
	if err := <-outcome; !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	if err := <-ended; err == nil {
		t.Error("the call of the owner does not end")
	}
}

// TestGuestDies: the calls of a guest that ends are dropped. Those of the others go on.
func TestGuestDies(t *testing.T) {
	started, ended := make(chan string, 1), make(chan error, 1)
	_, feeds, plugins := machine(t, 3, blocking(started, ended))
	go plugins[1][0].Call(t.Context(), supervise.Request{ClipIDs: []string{"wait"}})
	<-started
	feeds[1].Guest.conn.Close() // as the kernel does
	if err := <-ended; err == nil {
		t.Error("the call goes on")
	}
	for _, rank := range []int{0, 2} {
		if _, err := plugins[rank][0].Call(t.Context(), supervise.Request{ClipIDs: []string{"go"}}); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestOwnerDies: the calls of the guests fail at once, with what the meeting says of the rank, and else with what is
// known here.
func TestOwnerDies(t *testing.T) {
	for _, known := range []string{"rank 0 (node1) ended", ""} {
		started := make(chan string, 1)
		r, feeds, plugins := machine(t, 2, blocking(started, make(chan error, 1)))
		outcome := make(chan error, 1)
		go func() {
			_, err := plugins[1][0].Call(t.Context(), supervise.Request{ClipIDs: []string{"wait"}})
			outcome <- err
		}()
		<-started
		began := time.Now()
		feeds[0].Stop()
		want := "rank 0, which shares the plugins of this machine, has closed the connection"
		if known != "" {
			time.Sleep(20 * time.Millisecond) // the connection of the meeting is another one
			r.lose(known)
			want = known
		}
		err := <-outcome
		if exit.Code(err) != exit.StatusRank || err.Error() != want {
			t.Errorf("%v, exit status %d", err, exit.Code(err))
		}
		if took := time.Since(began); known != "" && took > time.Second || took > lastWords+time.Second {
			t.Errorf("after %v", took)
		}
		if _, again := plugins[1][0].Call(t.Context(), supervise.Request{ClipIDs: []string{"go"}}); again == nil ||
			again.Error() != want {
			t.Errorf("a call after it: %v", again)
		}
	}
}

// TestPluginFails: the failure of a plugin for good, in the call of a guest, is for the owner to report. If it does,
// the guest ends because of that, and else with the failure.
func TestPluginFails(t *testing.T) {
	failure := supervise.CrashLoop("mix", "too often", errors.New("a fault"))
	pool := &fakePool{call: func(context.Context, supervise.Request) (supervise.Result, error) {
		return supervise.Result{}, failure
	}}
	for _, told := range []bool{true, false} {
		r, _, plugins := machine(t, 2, pool)
		outcome := make(chan error, 1)
		go func() {
			_, err := plugins[1][0].Call(t.Context(), supervise.Request{})
			outcome <- err
		}()
		err := <-r.failed
		if !errors.Is(err, failure) || err.Error() != "for rank 1: "+failure.Error() {
			t.Errorf("the owner gets %v", err)
		}
		want := failure.Error()
		if told {
			want = "rank 0 failed: " + want
			r.lose(want)
		}
		if err := <-outcome; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestFrozenOwner: when a rank is lost, a guest does not wait for an owner that does not answer.
func TestFrozenOwner(t *testing.T) {
	started, release := make(chan string, 1), make(chan struct{})
	pool := &fakePool{call: func(context.Context, supervise.Request) (supervise.Result, error) {
		started <- ""
		<-release
		return supervise.Result{}, nil
	}}
	r, _, plugins := machine(t, 2, pool)
	defer close(release)
	outcome := make(chan error, 1)
	go func() {
		_, err := plugins[1][0].Call(t.Context(), supervise.Request{})
		outcome <- err
	}()
	<-started
	r.lose("nothing was heard of rank 0")
	if err := <-outcome; exit.Code(err) != exit.StatusRank {
		t.Error(err)
	}
}

// TestDamage: who ends all processes of a plugin has the other ranks told, when they have ended. Who ends one does not.
func TestDamage(t *testing.T) {
	pool := &fakePool{kicked: make(chan string, 1)}
	_, feeds, plugins := machine(t, 3, pool)
	told := make(chan int, 10)
	for rank, f := range feeds {
		f.OnDamage(func() { told <- rank })
	}
	for finder := range feeds {
		plugins[finder][0].Kick(supervise.ProcessID{Worker: 1}, "one")
		if got := <-pool.kicked; got != "one" {
			t.Errorf("kicked %q", got)
		}
		plugins[finder][0].KickAll("damage")
		if got := <-pool.kicked; got != "all: damage" {
			t.Errorf("kicked %q", got)
		}
		got := []int{<-told, <-told}
		slices.Sort(got)
		want := slices.DeleteFunc([]int{0, 1, 2}, func(rank int) bool { return rank == finder })
		if !slices.Equal(got, want) {
			t.Errorf("rank %d finds a damage, and %v are told", finder, got)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if len(told) > 0 {
		t.Errorf("%d are told once more", len(told))
	}
}

// TestFaultyRequests: what no rank sends ends the connection, and reaches no plugin.
func TestFaultyRequests(t *testing.T) {
	pool := &fakePool{call: func(_ context.Context, req supervise.Request) (supervise.Result, error) {
		t.Errorf("a call arrives: %+v", req)
		return supervise.Result{}, nil
	}}
	for name, q := range map[string]*request{
		"a slot of another rank": {Kind: call, Call: &supervise.Request{Slot: slots + 1}},
		"a slot below 0":         {Kind: call, Call: &supervise.Request{Slot: -1}},
		"no batch":               {Kind: call},
		"another plugin":         {Kind: call, Plugin: 1, Call: &supervise.Request{}},
		"a plugin below 0":       {Kind: kick, Plugin: -1},
		"another kind":           {Kind: 99},
	} {
		t.Run(name, func(t *testing.T) {
			r, feeds, _ := machine(t, 2, pool)
			if err := feeds[1].Guest.send(q); err != nil {
				t.Fatal(err)
			}
			r.lose("rank 0 ended") // so that the guest does not wait for a reason
			select {
			case <-feeds[1].Guest.gone:
			case <-time.After(lastWords + 5*time.Second):
				t.Error("the connection does not end")
			}
		})
	}
}

// TestMachine: ranks with the same identity are on one machine, and one without is alone.
func TestMachine(t *testing.T) {
	var all [][]byte
	for id := range strings.SplitSeq("a,b,a,,b,a,", ",") {
		all = append(all, []byte(id))
	}
	want := []world.Machine{
		{Index: 0, Size: 3, First: 0}, {Index: 0, Size: 2, First: 1}, {Index: 1, Size: 3, First: 0},
		{Index: 0, Size: 1, First: 3}, {Index: 1, Size: 2, First: 1}, {Index: 2, Size: 3, First: 0},
		{Index: 0, Size: 1, First: 6},
	}
	for rank := range all {
		if got := machineOf(rank, all); got != want[rank] {
			t.Errorf("rank %d: %+v, want %+v", rank, got, want[rank])
		}
	}
	if a, b := identity(""), identity("other"); len(a) == 0 || slices.Equal(a, b) || !slices.Equal(a, identity("")) {
		t.Errorf("%s, %s", a, b)
	}
}

// TestAloneOnItsMachine: ranks of several machines exchange what the others need, and those that are alone share
// nothing.
func TestAloneOnItsMachine(t *testing.T) {
	r := newRoom(2)
	var all sync.WaitGroup
	for rank := range 2 {
		all.Go(func() {
			f, err := Open(t.Context(), Config{
				Meeting: seat{r, rank}, Machine: world.Machine{Size: 1, First: rank}, Secret: secret,
				Need: Need{Slots: 1, SlotSize: 1},
			})
			if f != nil || err != nil || f.Close() != nil {
				t.Errorf("rank %d: %v, %v", rank, f, err)
			}
			f.Stop()
		})
	}
	all.Wait()
}
