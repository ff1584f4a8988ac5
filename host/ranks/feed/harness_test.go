package feed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/ranks/meet"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/ring"
)

const secret = "the secret of a test"

// room is where the ranks of a test meet.
type room struct {
	mu   sync.Mutex
	all  [][]byte
	left int
	full chan struct{}
	lost chan struct{}
	err  error

	failed chan error // gets what Config.Failed does
}

func newRoom(ranks int) *room {
	return &room{all: make([][]byte, ranks), left: ranks, full: make(chan struct{}), lost: make(chan struct{}),
		failed: make(chan error, 9)}
}

// lose has all ranks know that one has ended.
func (r *room) lose(text string) {
	r.err = &meet.LostError{Text: text}
	close(r.lost)
}

// seat is the room as a rank sees it.
type seat struct {
	*room
	rank int
}

func (s seat) World() world.World { return world.World{Rank: s.rank, Size: len(s.all)} }

// All may be called once for each rank.
func (s seat) All(data []byte) ([][]byte, error) {
	s.mu.Lock()
	s.all[s.rank] = data
	if s.left--; s.left == 0 {
		close(s.full)
	}
	s.mu.Unlock()
	<-s.full
	return s.all, nil
}

func (s seat) Lost() <-chan struct{} { return s.lost }
func (s seat) Err() error            { return s.err }

// fakePool answers the calls for a plugin.
type fakePool struct {
	call   func(ctx context.Context, req supervise.Request) (supervise.Result, error)
	kicked chan string
}

func (p *fakePool) Call(ctx context.Context, req supervise.Request) (supervise.Result, error) {
	return p.call(ctx, req)
}

func (p *fakePool) Kick(id supervise.ProcessID, reason string) { p.kicked <- reason }
func (p *fakePool) KickAll(reason string)                      { p.kicked <- "all: " + reason }
func (p *fakePool) Workers() int                               { return 3 }

const (
	slots    = 2 // of each rank, and one more for each rank before it
	slotSize = 1000
)

// machine opens what the ranks of a machine share, and closes it with the test. No goroutine, descriptor or file is
// left then.
func machine(t testing.TB, ranks int, pools ...supervise.Processes) (*room, []*Feed, [][]supervise.Processes) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "feed")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	r, feeds := newRoom(ranks), make([]*Feed, ranks)
	errs := make([]error, ranks)
	var opening sync.WaitGroup
	for rank := range ranks {
		opening.Go(func() {
			feeds[rank], errs[rank] = Open(t.Context(), Config{
				Meeting: seat{r, rank}, Machine: world.Machine{Index: rank, Size: ranks}, Secret: secret,
				Need:   Need{Slots: slots + rank, SlotSize: slotSize, Create: ring.Create},
				Failed: func(err error) { r.failed <- err },
			})
		})
	}
	opening.Wait()
	t.Cleanup(func() {
		for _, f := range feeds {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
		eventually(t, "descriptors close", func() bool { return openFiles(t) <= descriptors })
		os.RemoveAll(tmp)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("when all are connected, there is %v", left)
	}
	all := [][]supervise.Processes{feeds[0].Owner.Serve(pools)}
	for _, f := range feeds[1:] {
		own, err := f.Guest.Plugins(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, own)
	}
	return r, feeds, all
}

func openFiles(t testing.TB) int {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not in time", what)
			return
		}
	}
}
