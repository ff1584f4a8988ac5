// Package peerstest provides tests with the kernels of package peers and ranks in one process, without a GPU.
package peerstest

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/kernels"
)

// at is an address of the fake GPU, which is on the host, outside of Go's heap.
func at(address uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func number(address uint64, i uint64) *uint32 { return (*uint32)(at(address + 4*i)) }

// NewMeeting returns that of so many ranks.
func NewMeeting(size int) *Meeting { return &Meeting{texts: make([][]byte, size)} }

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
				x = kernels.Weighed(x, *(*float32)(at(weight)))
			}
			all += x
		}
		write(at(a[0]+uint64(width)*i), all)
	}
}

// threads are peers.SumThreads, which this package cannot name: the tests of peers use it.
const threads = 2048 * 256

// squares writes what each thread adds up: those of eight numbers in a row, then of the eight that follow those of all
// threads.
func squares(of []uint16, to []float32) {
	clear(to)
	for i, x := range of {
		to[i/8%threads] += kernels.F32(x) * kernels.F32(x)
	}
}

// Kernels are those of gpu/kernels/peers.cu on the CPU, for a fake GPU.
func Kernels() map[string]func([]uint64) {
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
			sum(a, 2, func(p unsafe.Pointer) float32 { return kernels.F32(*(*uint16)(p)) },
				func(p unsafe.Pointer, x float32) {
					*(*uint16)(p) = kernels.BF16(x)
				})
			if a[8] != 0 {
				squares(unsafe.Slice((*uint16)(at(a[0])), a[7]), unsafe.Slice((*float32)(at(a[8])), threads))
			}
		},
	}
}

// Meeting exchanges what ranks in this process pass to it.
type Meeting struct {
	mu    sync.Mutex
	texts [][]byte
	came  int
	done  chan struct{}
}

// Exchange is that of a rank.
func (m *Meeting) Exchange(rank int) func([]byte) ([][]byte, error) {
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
