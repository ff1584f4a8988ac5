package reduce

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/nccl/nccltest"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// member is a rank on a GPU of its own.
type member struct {
	*NCCL
	memory gpu.Memory
	wide   []float32 // at the beginning of the memory
	narrow []uint16  // after that
}

const values = 1000 // of each type

// newMember gives a rank memory on a fake GPU, to which the calling thread is bound.
func newMember(t *testing.T, c *nccl.Comm) *member {
	t.Helper()
	card := gputest.New(gputest.Config{Misuse: func(err error) { t.Error(err) }})
	must(t, card.Bind())
	stream, err := card.NewStream()
	must(t, err)
	m, err := card.Allocate(values * (4 + 2))
	must(t, err)
	address := m.Pointer()
	at := *(*unsafe.Pointer)(unsafe.Pointer(&address)) // outside of Go's heap
	return &member{
		NewNCCL(c, train.Device{Context: card, Compute: stream}, nil, false), m, unsafe.Slice((*float32)(at), values),
		unsafe.Slice((*uint16)(unsafe.Add(at, 4*values)), values),
	}
}

// parts are the values in three parts, of which the first two are adjacent.
func (m *member) parts() []train.Part {
	at := uint64(m.memory.Pointer())
	return []train.Part{
		{Address: at, Elements: 600, DType: manifest.F32}, {Address: at + 4*600, Elements: 400, DType: manifest.F32},
		{Address: at + 4*values, Elements: values, DType: manifest.BF16},
	}
}

// fill gives each rank other values. All of them are whole numbers that bf16 has.
func (m *member) fill(rank int) {
	for i := range values {
		m.wide[i] = float32((i + 1) * (rank + 1))
		m.narrow[i] = bf16(float32(i%16 + rank))
	}
}

// differ compares the values with those that a function gives for each index.
func (m *member) differ(what string, want func(i int) (wide, narrow int)) error {
	for i := range values {
		wide, narrow := want(i)
		if m.wide[i] != float32(wide) || m.narrow[i] != bf16(float32(narrow)) {
			return fmt.Errorf("%s: %v and %#x at %d, want %d and %d", what, m.wide[i], m.narrow[i], i, wide, narrow)
		}
	}
	return nil
}

func bf16(f float32) uint16 { return uint16(*(*uint32)(unsafe.Pointer(&f)) >> 16) }

// TestNCCL sums over three ranks, copies from rank 0, and sums again.
func TestNCCL(t *testing.T) {
	const size = 3
	all := nccltest.Join(t, nccltest.Open(t), size)
	errs := make(chan error)
	for rank, c := range all {
		go func() {
			runtime.LockOSThread()
			m := newMember(t, c)
			m.fill(rank)
			err := m.Sum(m.stream, m.parts())
			sum := m.differ("the sum", func(i int) (int, int) { return (i + 1) * 6, i%16*3 + 3 })
			m.fill(rank)
			err = errors.Join(err, m.Broadcast(m.parts()))
			sent := m.differ("rank 0", func(i int) (int, int) { return i + 1, i % 16 })
			err = errors.Join(err, m.Sum(m.stream, m.parts()))
			again := m.differ("the sum of what rank 0 had", func(i int) (int, int) { return (i + 1) * 3, i % 16 * 3 })
			errs <- errors.Join(err, sum, sent, again, m.Close(), m.Close())
		}()
	}
	for range size {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestParts: what is no part on a GPU is refused, before anything is queued.
func TestParts(t *testing.T) {
	runtime.LockOSThread()
	m := newMember(t, nccltest.Join(t, nccltest.Open(t), 1)[0])
	for want, part := range map[string]train.Part{
		"part 3 is not on a GPU":                {Elements: 1, DType: manifest.F32},
		`part 3 is "f16", neither f32 nor bf16`: {Address: 8, Elements: 1, DType: manifest.F16},
	} {
		parts := append(m.parts(), part)
		for what, call := range map[string]func([]train.Part) error{
			"sum over the ranks": func(parts []train.Part) error { return m.Sum(m.stream, parts) },
			"copy from rank 0":   m.Broadcast,
		} {
			if err := call(parts); err == nil || err.Error() != what+": "+want {
				t.Errorf("error %v, want %s: %s", err, what, want)
			}
		}
	}
	must(t, m.Close())
}

// TestAbort: a rank whose other one does not come ends.
func TestAbort(t *testing.T) {
	all := nccltest.Join(t, nccltest.Open(t), 2)
	waits, made := make(chan error), make(chan *member)
	go func() {
		runtime.LockOSThread()
		m := newMember(t, all[0])
		made <- m
		waits <- m.Sum(m.stream, m.parts())
		waits <- m.Sum(m.stream, m.parts())
		waits <- m.Close()
	}()
	m := <-made
	time.Sleep(50 * time.Millisecond)
	m.Abort()
	for i, want := range []error{nccl.ErrEnded, nccl.ErrEnded, nil} {
		select {
		case err := <-waits:
			if !errors.Is(err, want) {
				t.Errorf("call %d after the abort: %v, want %v", i, err, want)
			}
		case <-time.After(3 * time.Second):
			t.Fatal("the rank still waits")
		}
	}
	must(t, all[1].Abort())
}

// TestPatience: an NCCL that does not end, because of a graph that is alive, keeps nobody for ever.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &NCCL{context: gputest.New(gputest.Config{}), ended: make(chan struct{})}
		graph := make(chan struct{})
		n.end(func() error {
			_, _, unbound := n.context.MemInfo()
			<-graph
			return unbound
		})
		began := time.Now()
		if err := n.Close(); err == nil || time.Since(began) != patience {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		close(graph)
		must(t, n.Close())
	})
}
