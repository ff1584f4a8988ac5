package peers

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
)

// at is an address of the fake GPU, which is on the host, outside of Go's heap.
func at(address uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func number(address uint64, i uint64) *uint32 { return (*uint32)(at(address + 4*i)) }

// reached waits as the kernel does.
func reached(a []uint64, i uint64, round uint32) {
	for int32(atomic.LoadUint32(number(a[1], i))-round) < 0 && atomic.LoadUint32(number(a[2], 0)) == 0 {
		time.Sleep(10 * time.Microsecond)
	}
}

// sum is the kernel's, for a type of so many bytes.
func sum(a []uint64, width int, read func(p unsafe.Pointer) float32, write func(p unsafe.Pointer, x float32)) {
	rank, size := int(a[5]), int(a[6])
	place := func(r int) uint64 {
		if r > rank {
			r--
		}
		return uint64(r) * a[4]
	}
	for i := range uint64(a[7]) {
		var all float32
		for r := range size {
			from, weight := a[0], a[2]
			if r != rank {
				from, weight = a[1]+place(r), a[3]+place(r)
			}
			x := read(at(from + uint64(width)*i))
			if a[2] != 0 {
				x = weighed(x, *(*float32)(at(weight)))
			}
			all += x
		}
		write(at(a[0]+uint64(width)*i), all)
	}
}

// fakes are the kernels of gpu/kernels/peers.cu on the CPU.
func fakes() map[string]func([]uint64) {
	return map[string]func([]uint64){
		"peers_begin": func(a []uint64) {
			for i := range a[3] {
				reached(a, i, *number(a[0], 0))
			}
			*number(a[0], 0)++
		},
		"peers_tell": func(a []uint64) {
			for i := range a[3] {
				if atomic.LoadUint32(number(a[2], 0)) != 0 {
					return
				}
				atomic.StoreUint32(number(*(*uint64)(at(a[1] + 8*i)), 0), *number(a[0], 0))
			}
		},
		"peers_wait": func(a []uint64) {
			for i := range a[3] {
				reached(a, i, *number(a[0], 0))
			}
		},
		"peers_sum": func(a []uint64) {
			sum(a, 4, func(p unsafe.Pointer) float32 { return *(*float32)(p) },
				func(p unsafe.Pointer, x float32) { *(*float32)(p) = x })
		},
		"peers_sum_bf16": func(a []uint64) {
			sum(a, 2, func(p unsafe.Pointer) float32 { return math.Float32frombits(uint32(*(*uint16)(p)) << 16) },
				func(p unsafe.Pointer, x float32) { *(*uint16)(p) = uint16(math.Float32bits(rounded(x)) >> 16) })
		},
	}
}

// meeting exchanges what ranks in this process pass to it.
type meeting struct {
	mu    sync.Mutex
	texts [][]byte
	came  int
	done  chan struct{}
}

func (m *meeting) exchange(rank int) func([]byte) ([][]byte, error) {
	return func(own []byte) ([][]byte, error) {
		m.mu.Lock()
		if m.came == 0 {
			m.texts, m.done = make([][]byte, len(m.texts)), make(chan struct{})
		}
		m.texts[rank] = own
		texts, done := m.texts, m.done
		if m.came++; m.came == len(m.texts) {
			m.came = 0
			close(done)
		}
		m.mu.Unlock()
		<-done
		return texts, nil
	}
}

// rank is a rank on a GPU of its own, in a goroutine that is bound to it.
type rank struct {
	number int
	card   *gputest.Context
	config Config
}

// each runs a function for so many ranks at the same time, with windows of so many bytes.
func each(t *testing.T, size, bytes int, kernels func(rank int) map[string]func([]uint64), run func(r rank) error) {
	t.Helper()
	m := &meeting{texts: make([][]byte, size)}
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
					Context: card, Rank: number, Size: size, Bytes: bytes, Exchange: m.exchange(number),
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

func right(int) map[string]func([]uint64) { return fakes() }

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
			kernels := fakes()
			if sum := kernels[name]; number == 1 {
				kernels[name] = func(a []uint64) {
					sum(a)
					*(*uint16)(at(a[0] + 2*7))++
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
				return fakes()
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
