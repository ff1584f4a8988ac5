// Package gputest provides a GPU for tests on machines without one, and the test that every gpu.Context must pass.
//
// The GPU is a fake in pure Go. Its memory is host memory. Each stream does its work in order and concurrently with the
// other streams, and a copy takes the time that the bandwidth implies. In a bubble of testing/synctest this is virtual
// time, so a test can check overlaps to the nanosecond and takes no time itself:
//
//	synctest.Test(t, func(t *testing.T) {
//		card := gputest.New(gputest.Config{Bandwidth: 1e9, Misuse: func(err error) { t.Error(err) }})
//		runtime.LockOSThread()
//		card.Bind()
//		stream, _ := card.NewStream()
//		stream.Upload(slot, 0, batch)                         // 1 ms for 1 MB
//		stream.(*gputest.Stream).Run(55*time.Millisecond, step) // the work of another library
//		stream.Synchronize()                                  // 56 ms have passed
//	})
//
// It reports misuse that CUDA ignores: see ErrMisuse. Context.Fail injects failures.
package gputest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
)

// ErrMisuse matches errors for calls that break the rules of package gpu: on a thread without Bind, on closed values,
// with memory that is not pinned or not of the card, or beyond the end of a block; for memory that is closed, or bytes
// that change, during a copy; and for a Context that is closed before everything created with it.
var ErrMisuse = errors.New("misuse of the GPU")

// Config describes the card of New. The zero value is a card of 1 GiB whose copies take no time.
type Config struct {
	Device gpu.Device // the zero value means a device named "Fake card"
	Memory int        // total memory in bytes; 0 means 1 GiB
	// Bandwidth is the number of bytes that Upload and Download copy per second, on each stream; 0 means that they take
	// no time. Copy and Clear take no time.
	Bandwidth int
	// Kernels are the functions that Launch calls, by the name of the kernel. The arguments are addresses in host
	// memory, and numbers.
	Kernels map[string]func(arguments []uint64)
	// Misuse, if not nil, is called for every misuse, even if the caller ignores the error or there is no caller. It
	// may be called from any goroutine, and must call nothing of this package.
	Misuse func(error)
}

// Op is a kind of call for Context.Fail.
type Op string

const (
	Allocate     Op = "allocate GPU memory"
	AllocateHost Op = "allocate pinned memory"
	Register     Op = "pin memory"
	Upload       Op = "upload"
	Download     Op = "download"
	Copy         Op = "copy"
	Clear        Op = "clear"
	Launch       Op = "launch"
	Run          Op = "run"
)

// Context is the fake card. Use New to create one.
type Context struct {
	config Config

	mu      sync.Mutex
	threads map[int]bool // threads that called Bind
	blocks  []*Memory
	used    int // bytes of the card
	open    map[string]int
	streams []*Stream
	fail    map[Op]injection
	lost    error // the error that a stream's work failed with
	closed  bool
}

type injection struct {
	calls int // calls until the one that fails
	err   error
}

// New returns a card.
func New(config Config) *Context {
	config.Memory = cmp.Or(config.Memory, 1<<30)
	config.Device = cmp.Or(config.Device, gpu.Device{
		UUID: "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", PCI: "0000:1b:00.0", Name: "Fake card", Capability: 90,
		Multiprocessors: gpu.Multiprocessors{Count: 132, SharedMemory: 228 << 10},
	})
	return &Context{config: config, threads: map[int]bool{}, open: map[string]int{}, fail: map[Op]injection{}}
}

// Fail makes the nth call of op from now on, counting from 1, fail with err. Work of a stream fails when it is
// executed. As with CUDA, the context is lost then: queued work is not done, and every later call returns the error,
// except that Close still closes.
func (c *Context) Fail(op Op, nth int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail[op] = injection{nth, err}
}

// injected counts a call of op, and returns the error that was injected for it. The caller holds mu.
func (c *Context) injected(op Op) error {
	f, ok := c.fail[op]
	if !ok {
		return nil
	}
	if f.calls--; f.calls > 0 {
		c.fail[op] = f
		return nil
	}
	delete(c.fail, op)
	return fmt.Errorf("%s: %w", op, f.err)
}

// misuse returns an error that matches ErrMisuse and passes it to Config.Misuse.
func (c *Context) misuse(format string, args ...any) error {
	err := fmt.Errorf("%w: %w", ErrMisuse, fmt.Errorf(format, args...))
	if c.config.Misuse != nil {
		c.config.Misuse(err)
	}
	return err
}

// enter starts every call. The caller holds mu.
func (c *Context) enter(op Op) error {
	if c.closed {
		return c.misuse("%s: GPU %s: %w", op, c.config.Device.UUID, gpu.ErrClosed)
	}
	if !c.threads[syscall.Gettid()] {
		return c.misuse("%s: the calling thread is not bound to the GPU", op)
	}
	return c.lost
}

// takes returns the duration of a copy of size bytes.
func (c *Context) takes(size int) time.Duration {
	if c.config.Bandwidth == 0 {
		return 0
	}
	return time.Duration(float64(size) / float64(c.config.Bandwidth) * float64(time.Second))
}

func (c *Context) Device() gpu.Device { return c.config.Device }

func (c *Context) Bind() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads[syscall.Gettid()] = true
	return c.enter("bind a thread")
}

func (c *Context) MemInfo() (free, total int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("ask for the GPU's memory"); err != nil {
		return 0, 0, err
	}
	return c.config.Memory - c.used, c.config.Memory, nil
}

func (c *Context) Synchronize() error {
	c.mu.Lock()
	err := c.enter("wait for the GPU")
	var last []*point
	for _, s := range c.streams {
		last = append(last, s.last)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range last {
		p.wait()
	}
	return c.failed()
}

// Close returns an error that matches ErrMisuse if something that was created with the context is open.
func (c *Context) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	var left []string
	for what, n := range c.open {
		if n > 0 {
			left = append(left, fmt.Sprintf("%d of %s", n, what))
		}
	}
	if left == nil {
		return nil
	}
	slices.Sort(left)
	return c.misuse("close the GPU before everything that was created with it: open are %s", strings.Join(left, ", "))
}
