package peers

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/gpu/peers/peerstest"
)

// rank is a rank on a GPU of its own, in a goroutine that is bound to it.
type rank struct {
	number int
	card   *gputest.Context
	config Config
}

// each runs a function for so many ranks at the same time, with windows of so many bytes.
func each(t *testing.T, size, bytes int, kernels func(rank int) map[string]func([]uint64), run func(r rank) error) {
	t.Helper()
	m := peerstest.NewMeeting(size)
	errs := make(chan error)
	for number := range size {
		go func() {
			runtime.LockOSThread() // never unlocked
			card := gputest.New(gputest.Config{
				Misuse: func(err error) { t.Error(err) }, Kernels: kernels(number),
			})
			err := card.Bind()
			if err == nil {
				err = run(rank{number, card, Config{
					Context: card, Rank: number, Size: size, Bytes: bytes, Exchange: m.Exchange(number),
				}})
			}
			errs <- errors.Join(err, card.Close())
		}()
	}
	for range size {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func right(int) map[string]func([]uint64) { return peerstest.Kernels() }

// TestRounds: the sums of several rounds have the bits of sums in the order of the ranks, also if a rank is late.
func TestRounds(t *testing.T) {
	for size := 2; size <= 4; size++ {
		each(t, size, 4096, right, func(r rank) error {
			w, err := Open(r.config) // which makes two rounds
			if err != nil {
				return err
			}
			p := proof{Window: w}
			err = p.open()
			for round := 2; round < 7 && err == nil; round++ {
				if r.number == round%size {
					time.Sleep(5 * time.Millisecond)
				}
				err = errors.Join(p.round(round), p.check(round))
			}
			_, late := r.config.Exchange(nil) // no rank closes what another one still writes to
			return errors.Join(err, late, p.close(), w.Close(), w.Close())
		})
	}
}

// TestAWrongSum: a kernel or a copy that is wrong on one rank leaves all of them without a window, and they say why.
func TestAWrongSum(t *testing.T) {
	for _, name := range []string{"peers_sum", "peers_sum_bf16"} {
		wrong := func(number int) map[string]func([]uint64) {
			kernels := peerstest.Kernels()
			if sum := kernels[name]; number == 1 {
				kernels[name] = func(a []uint64) {
					sum(a)
					address := a[0] + 2*7
					*(*uint16)(*(*unsafe.Pointer)(unsafe.Pointer(&address)))++ // outside of Go's heap
				}
			}
			return kernels
		}
		each(t, 3, 4096, wrong, func(r rank) error {
			w, err := Open(r.config)
			if w != nil || !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), "the sum of 3 GPUs in ") {
				return fmt.Errorf("rank %d: %v", r.number, err)
			}
			return nil
		})
	}
}

// TestApart: ranks that lack what is needed, or differ, have no window.
func TestApart(t *testing.T) {
	for want, change := range map[string]func(r *rank){
		"no kernel for this GPU": func(r *rank) {},
		"windows of ":            func(r *rank) { r.config.Bytes += 512 * r.number },
		"32 are possible":        func(r *rank) { r.config.Size = 99 },
	} {
		kernels := right
		if strings.HasPrefix(want, "no kernel") {
			kernels = func(number int) map[string]func([]uint64) {
				if number == 0 {
					return nil
				}
				return peerstest.Kernels()
			}
		}
		each(t, 2, 4096, kernels, func(r rank) error {
			change(&r)
			w, err := Open(r.config)
			if w != nil || !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("rank %d: %v, want %s", r.number, err, want)
			}
			return nil
		})
	}
}

// TestAbort: a rank whose other one sends nothing ends, and so does what it queues later.
func TestAbort(t *testing.T) {
	each(t, 2, 4096, right, func(r rank) error {
		w, err := Open(r.config)
		if err != nil {
			return err
		}
		var stream gpu.Stream
		if stream, err = r.card.NewStream(); err != nil {
			return err
		}
		if r.number == 0 {
			err = errors.Join(w.Begin(stream), w.Tell(stream), w.Wait(stream))
			time.Sleep(20 * time.Millisecond)
			if idle, _ := stream.Idle(); idle {
				err = errors.Join(err, errors.New("it has not waited"))
			}
			w.Abort()
			err = errors.Join(err, stream.Synchronize(), w.Begin(stream), w.Wait(stream), stream.Synchronize())
		}
		_, late := r.config.Exchange(nil)
		err = errors.Join(err, late, stream.Close(), w.Close())
		w.Abort() // it does nothing
		return err
	})
}
