package supervise

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestCallsWaitInOrder: a process has a limited number of calls. The next call is that of the batch that is trained on
// first, regardless of the order of arrival.
func TestCallsWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{
			cfg: Config{InFlight: 2}, changed: make(chan struct{}), limits: make([]deadlines, 1),
			workers: []*worker{{up: true}, {index: 1}},
		}
		var mu sync.Mutex
		var got []uint64
		for _, order := range []uint64{40, 50, 9, 7, 8, 30} {
			go func() {
				w, _, _, err := p.acquire(t.Context(), &Request{Order: order})
				if err != nil || (w.index != 0) != (order == 30) {
					t.Errorf("call %d: worker %+v, %v", order, w, err)
				}
				mu.Lock()
				got = append(got, order)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		for range 3 {
			p.release(p.workers[0], 0, nil, 1, true)
			synctest.Wait()
		}
		// The first two came when the process was idle.
		if want := []uint64{40, 50, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("calls were served in the order %v, want %v", got, want)
		}
		p.update(func() { p.workers[1].up = true }) // another process serves the last one
		synctest.Wait()
		if len(got) != 6 || len(p.waiting) != 0 || p.workers[1].inFlight != 1 {
			t.Errorf("%v served, %d wait, %+v", got, len(p.waiting), p.workers[1])
		}
	})
}
