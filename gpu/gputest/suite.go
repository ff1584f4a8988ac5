package gputest

import (
	"bytes"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
)

// TestContext checks that contexts keep the promises of package gpu. It calls open once, and closes the result.
func TestContext(t *testing.T, open func() (gpu.Context, error)) {
	c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("NotBound", func(t *testing.T) { testNotBound(t, c) })
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"Device", testDevice},
		{"Allocate", testAllocate},
		{"OutOfMemory", testOutOfMemory},
		{"Copies", testCopies},
		{"Register", testRegister},
		{"Share", testShare},
		{"OutOfRange", testOutOfRange},
		{"Events", testEvents},
		{"Order", testOrder},
		{"Synchronize", testSynchronize},
		{"Kernels", testKernels},
		{"Threads", testThreads},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(newSuite(t, c)) })
	}
	t.Run("Close", func(t *testing.T) {
		newSuite(t, c)
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := c.Bind(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("Bind after Close: %v, not gpu.ErrClosed", err)
		}
	})
}

// suite creates values with a context, on a thread that is bound to it, and closes them when the test ends.
type suite struct {
	*testing.T
	c gpu.Context
}

func newSuite(t *testing.T, c gpu.Context) *suite {
	runtime.LockOSThread() // never unlocked: a bound thread must not run other goroutines
	if err := c.Bind(); err != nil {
		t.Fatal(err)
	}
	return &suite{t, c}
}

func (s *suite) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func must[T interface{ Close() error }](s *suite, v T, err error) T {
	s.Helper()
	s.no(err)
	s.Cleanup(func() {
		if err := v.Close(); err != nil {
			s.Error(err)
		}
	})
	return v
}

func (s *suite) memory(size int) gpu.Memory {
	s.Helper()
	m, err := s.c.Allocate(size)
	return must(s, m, err)
}

func (s *suite) pinned(size int) []byte {
	s.Helper()
	m, err := s.c.AllocateHost(size)
	return must(s, m, err).Bytes()
}

func (s *suite) stream() gpu.Stream {
	s.Helper()
	q, err := s.c.NewStream()
	return must(s, q, err)
}

func (s *suite) event() gpu.Event {
	s.Helper()
	e, err := s.c.NewEvent()
	return must(s, e, err)
}

// fill gives every byte of b a value that depends on its place and the seed.
func fill(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
	return b
}

func testNotBound(t *testing.T, c gpu.Context) {
	runtime.LockOSThread() // never unlocked, see newSuite
	if _, _, err := c.MemInfo(); err == nil {
		t.Error("MemInfo works on a thread without Bind")
	}
	if err := c.Synchronize(); err == nil {
		t.Error("Synchronize works on a thread without Bind")
	}
	if _, err := c.NewStream(); err == nil {
		t.Error("NewStream works on a thread without Bind")
	}
	if m, err := c.Allocate(1); err == nil || m != nil {
		t.Errorf("Allocate on a thread without Bind returns %v, %v", m, err)
	}
}

func testDevice(s *suite) {
	if d := s.c.Device(); d.UUID == "" || d.Name == "" || d.PCI == "" || d.Capability < 50 {
		s.Errorf("device %+v", d)
	} else if d.Multiprocessors.Count <= 0 || d.Multiprocessors.SharedMemory < 64<<10 {
		s.Errorf("multiprocessors %+v", d.Multiprocessors)
	}
	free, total, err := s.c.MemInfo()
	s.no(err)
	if free <= 0 || free > total {
		s.Errorf("%d bytes of %d are free", free, total)
	}
}

func testAllocate(s *suite) {
	q := s.stream()
	for _, size := range []int{1, 255, 1 << 20} {
		m := s.memory(size)
		if m.Size() != size || m.Pointer() == 0 || m.Pointer()%256 != 0 {
			s.Errorf("%d bytes at %#x, want %d at a multiple of 256", m.Size(), m.Pointer(), size)
		}
		host := s.pinned(size)
		if len(host) != size || !bytes.Equal(host, make([]byte, size)) {
			s.Errorf("pinned memory of %d bytes has %d and is not zero", size, len(host))
		}
		fill(host, 1)
		s.no(q.Download(host, m, 0))
		s.no(q.Synchronize())
		if !bytes.Equal(host, make([]byte, size)) {
			s.Errorf("%d bytes of new GPU memory are not zero", size)
		}
	}
	for _, size := range []int{0, -1} {
		if m, err := s.c.Allocate(size); err == nil || m != nil {
			s.Errorf("Allocate(%d) returns %v, %v", size, m, err)
		}
		if m, err := s.c.AllocateHost(size); err == nil || m != nil {
			s.Errorf("AllocateHost(%d) returns %v, %v", size, m, err)
		}
	}
}

func testOutOfMemory(s *suite) {
	_, total, err := s.c.MemInfo()
	s.no(err)
	m, err := s.c.Allocate(total + 1)
	if !errors.Is(err, gpu.ErrOutOfMemory) || m != nil {
		s.Errorf("a block larger than the card: %v, %v, not gpu.ErrOutOfMemory", m, err)
	}
	var status interface{ ExitStatus() int }
	if !errors.As(err, &status) || status.ExitStatus() != 3 {
		s.Errorf("a block larger than the card: %v has no exit status 3", err)
	}
	s.memory(1) // the context still works
}

func testCopies(s *suite) {
	const size, at = 1 << 16, 100
	q, a, b := s.stream(), s.memory(size), s.memory(size)
	src, dst := fill(s.pinned(size), 1), s.pinned(size)

	want := make([]byte, size) // of b
	s.no(q.Upload(a, at, src[:size-at]))
	s.no(q.Copy(b, 2*at, a, at, 1000))
	copy(want[2*at:], src[:1000])
	s.no(q.Clear(b, 3*at, 50))
	clear(want[3*at:][:50])
	s.no(q.Upload(b, size-at, src[:at]))
	copy(want[size-at:], src)
	s.no(q.Download(dst, b, 0))
	for _, err := range []error{
		q.Upload(a, size, nil), q.Download(nil, a, 0), q.Copy(a, 0, b, size, 0), q.Clear(a, size, 0),
	} {
		if err != nil {
			s.Errorf("a copy of no bytes: %v", err)
		}
	}
	s.no(q.Synchronize())
	if !bytes.Equal(dst, want) {
		s.Error("upload, copy, clear and download change the bytes")
	}
	if idle, err := q.Idle(); !idle || err != nil {
		s.Errorf("after Synchronize the stream is idle: %v, %v", idle, err)
	}
}

func testRegister(s *suite) {
	const size = 1 << 16
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	s.no(err)
	defer syscall.Munmap(mem)
	q, a, dst := s.stream(), s.memory(size), s.pinned(size)
	for seed := range 2 { // it can be pinned again after it was released
		r, err := s.c.Register(mem)
		s.no(err)
		if again, err := s.c.Register(mem); err == nil || again != nil {
			s.Errorf("the same memory is pinned twice: %v, %v", again, err)
		}
		fill(mem, seed)
		s.no(q.Upload(a, 0, mem))
		s.no(q.Download(dst, a, 0))
		s.no(q.Synchronize())
		if !bytes.Equal(dst, mem) {
			s.Error("a copy from registered memory changes the bytes")
		}
		s.no(r.Close())
		s.no(r.Close())
	}
	if r, err := s.c.Register(nil); err == nil || r != nil {
		s.Errorf("Register(nil) returns %v, %v", r, err)
	}
}

func testOutOfRange(s *suite) {
	q, a, b, host := s.stream(), s.memory(100), s.memory(100), s.pinned(101)
	for name, err := range map[string]error{
		"upload of a byte too many":   q.Upload(a, 0, host),
		"upload beyond the end":       q.Upload(a, 100, host[:1]),
		"upload before the start":     q.Upload(a, -1, host[:1]),
		"download of a byte too many": q.Download(host, a, 0),
		"download beyond the end":     q.Download(host[:50], a, 51),
		"copy from beyond the end":    q.Copy(a, 0, b, 51, 50),
		"copy to beyond the end":      q.Copy(a, 51, b, 0, 50),
		"copy of less than nothing":   q.Copy(a, 0, b, 0, -1),
		"clear beyond the end":        q.Clear(a, 1, 100),
	} {
		if err == nil {
			s.Errorf("%s returned no error", name)
		}
	}
	s.no(q.Synchronize()) // none of them was queued
}

func testEvents(s *suite) {
	q, a, host := s.stream(), s.memory(1<<20), s.pinned(1<<20)
	start, end := s.event(), s.event()
	if happened, err := start.Happened(); !happened || err != nil {
		s.Errorf("before its first Record an event has happened: %v, %v", happened, err)
	}
	s.no(start.Synchronize())
	s.no(q.Wait(start))
	if _, err := end.Since(start); err == nil {
		s.Error("time since an event that was never recorded returned no error")
	}
	for range 2 { // an event can be recorded again
		s.no(q.Record(start))
		s.no(q.Upload(a, 0, host))
		s.no(q.Record(end))
		s.no(end.Synchronize())
		if happened, err := end.Happened(); !happened || err != nil {
			s.Errorf("after Synchronize an event has happened: %v, %v", happened, err)
		}
		if d, err := end.Since(start); d < 0 || d > time.Minute || err != nil {
			s.Errorf("a copy of 1 MiB took %v, %v", d, err)
		}
	}
}

// testOrder lets two streams use one block alternately. Without Wait each would run ahead of the other.
func testOrder(s *suite) {
	const size, turns = 1 << 18, 16
	up, down := s.stream(), s.stream()
	full, empty := s.event(), s.event()
	a, src, dst := s.memory(size), s.pinned(size*turns), s.pinned(size*turns)
	for i := range turns {
		fill(src[i*size:][:size], i)
	}
	for i := range turns {
		s.no(up.Wait(empty))
		s.no(up.Upload(a, 0, src[i*size:][:size]))
		s.no(up.Record(full))
		s.no(down.Wait(full))
		s.no(down.Download(dst[i*size:][:size], a, 0))
		s.no(down.Record(empty))
	}
	s.no(down.Synchronize())
	for i := range turns {
		if !bytes.Equal(dst[i*size:][:size], src[i*size:][:size]) {
			s.Errorf("turn %d changed the bytes", i)
		}
	}
}

// testSynchronize: the context waits for all streams.
func testSynchronize(s *suite) {
	const size = 1 << 20
	var streams []gpu.Stream
	for range 3 {
		q, m := s.stream(), s.memory(size)
		s.no(q.Upload(m, 0, s.pinned(size)))
		streams = append(streams, q)
	}
	s.no(s.c.Synchronize())
	for _, q := range streams {
		if idle, err := q.Idle(); !idle || err != nil {
			s.Errorf("after Synchronize of the context a stream is idle: %v, %v", idle, err)
		}
	}
}

// testThreads lets threads work concurrently, each with its own stream.
func testThreads(s *suite) {
	const size, threads = 1 << 16, 4
	failed := make(chan error)
	for i := range threads {
		src, dst := fill(s.pinned(size), i), s.pinned(size)
		go func() {
			runtime.LockOSThread() // never unlocked, see newSuite
			failed <- func() error {
				if err := s.c.Bind(); err != nil {
					return err
				}
				return roundTrips(s.c, src, dst)
			}()
		}()
	}
	for range threads {
		if err := <-failed; err != nil {
			s.Error(err)
		}
	}
}

// roundTrips copies src to the GPU and back to dst several times, with a new block and stream each time.
func roundTrips(c gpu.Context, src, dst []byte) error {
	for range 4 {
		clear(dst)
		m, err := c.Allocate(len(src))
		if err != nil {
			return err
		}
		q, err := c.NewStream()
		if err != nil {
			return err
		}
		err = errors.Join(q.Upload(m, 0, src), q.Download(dst, m, 0), q.Synchronize(), q.Close(), m.Close())
		if err != nil {
			return err
		}
		if !bytes.Equal(dst, src) {
			return errors.New("concurrent copies change the bytes")
		}
	}
	return nil
}

func testKernels(s *suite) {
	if m, err := s.c.NewModule([]byte("this is not PTX")); !errors.Is(err, gpu.ErrNoKernel) || m != nil {
		s.Errorf("invalid PTX: %v, %v, not gpu.ErrNoKernel", m, err)
	}
	m, err := s.c.NewModule([]byte(nothingPTX))
	s.no(err)
	if k, err := m.Kernel("something"); err == nil || errors.Is(err, gpu.ErrNoKernel) || k != nil {
		s.Errorf("a name that is not in it: %v, %v", k, err)
	}
	k, err := m.Kernel("nothing")
	s.no(err)
	if k.Pointer() == 0 {
		s.Error("a kernel has no pointer")
	}
	s.no(k.SetShared(1 << 10))
	if k.SetShared(1<<30) == nil {
		s.Error("a block has 1 GiB of shared memory")
	}
	q := s.stream()
	s.no(errors.Join(q.Launch(k, 3, 64), q.Synchronize()))
	for range 2 {
		s.no(m.Close())
	}
	if err := k.SetShared(0); !errors.Is(err, gpu.ErrClosed) {
		s.Errorf("SetShared of a closed kernel: %v, not gpu.ErrClosed", err)
	}
	if err := q.Launch(k, 1, 1); !errors.Is(err, gpu.ErrClosed) {
		s.Errorf("Launch of a closed kernel: %v, not gpu.ErrClosed", err)
	}
	if _, err := m.Kernel("nothing"); !errors.Is(err, gpu.ErrClosed) {
		s.Errorf("Kernel of a closed module: %v, not gpu.ErrClosed", err)
	}
}

func testClosed(s *suite) {
	q, m, e := s.stream(), s.memory(10), s.event()
	open, host := s.stream(), s.pinned(10)
	h, err := s.c.AllocateHost(10)
	s.no(err)
	for range 2 {
		s.no(errors.Join(q.Close(), m.Close(), e.Close(), h.Close()))
	}
	if h.Bytes() != nil {
		s.Error("pinned memory has bytes after Close")
	}
	_, happened := e.Happened()
	for name, err := range map[string]error{
		"Upload on a closed stream":      q.Upload(m, 0, host),
		"Synchronize of a closed stream": q.Synchronize(),
		"Record on a closed stream":      q.Record(e),
		"Upload to closed memory":        open.Upload(m, 0, host),
		"Download from closed memory":    open.Download(host, m, 0),
		"Clear of closed memory":         open.Clear(m, 0, 10),
		"Record of a closed event":       open.Record(e),
		"Wait for a closed event":        open.Wait(e),
		"Synchronize of a closed event":  e.Synchronize(),
		"Happened of a closed event":     happened,
	} {
		if !errors.Is(err, gpu.ErrClosed) {
			s.Errorf("%s: %v, not gpu.ErrClosed", name, err)
		}
	}
}
