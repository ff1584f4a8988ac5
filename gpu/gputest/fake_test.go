package gputest_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
)

// card is a fake card that copies one byte per nanosecond, with the resources that most tests need.
type card struct {
	*testing.T
	*gputest.Context
	misuses []error
}

// onCard runs f in a bubble of virtual time, on a thread that is bound to a new card.
func onCard(t *testing.T, f func(c *card)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		c := &card{T: t}
		c.Context = gputest.New(gputest.Config{
			Memory: 1 << 20, Bandwidth: 1e9, Misuse: func(err error) { c.misuses = append(c.misuses, err) },
		})
		c.no(c.Bind())
		f(c)
	})
}

func (c *card) no(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *card) stream() *gputest.Stream {
	s, err := c.NewStream()
	c.no(err)
	return s.(*gputest.Stream)
}

func (c *card) event() gpu.Event {
	e, err := c.NewEvent()
	c.no(err)
	return e
}

func (c *card) memory(size int) *gputest.Memory {
	m, err := c.Allocate(size)
	c.no(err)
	return m.(*gputest.Memory)
}

func (c *card) pinned(size int) *gputest.Memory {
	m, err := c.AllocateHost(size)
	c.no(err)
	return m.(*gputest.Memory)
}

// took asserts how much virtual time has passed since a point.
func (c *card) took(since time.Time, want time.Duration) {
	c.Helper()
	if got := time.Since(since); got != want {
		c.Errorf("took %v, want %v", got, want)
	}
}

func idle() error { return nil }

func TestStreamsWorkSideBySide(t *testing.T) {
	onCard(t, func(c *card) {
		compute, copies := c.stream(), c.stream()
		m, host := c.memory(100_000), c.pinned(100_000)
		begin, end := c.event(), c.event()
		start := time.Now()
		c.no(compute.Run(time.Millisecond, idle))
		c.no(copies.Record(begin))
		for range 3 {
			c.no(copies.Upload(m, 0, host.Bytes()))
		}
		c.no(copies.Record(end))
		c.took(start, 0)
		if happened, err := end.Happened(); happened || err != nil {
			c.Errorf("copies that are under way have happened: %v, %v", happened, err)
		}
		c.no(end.Synchronize())
		c.took(start, 300*time.Microsecond)
		if d, err := end.Since(begin); d != 300*time.Microsecond || err != nil {
			c.Errorf("three copies took %v, %v", d, err)
		}
		if idle, err := compute.Idle(); idle || err != nil {
			c.Errorf("a stream at work is idle: %v, %v", idle, err)
		}
		c.no(compute.Synchronize())
		c.took(start, time.Millisecond)
	})
}

func TestWaitHoldsBack(t *testing.T) {
	onCard(t, func(c *card) {
		compute, copies := c.stream(), c.stream()
		m, host := c.memory(1000), c.pinned(1000)
		host.Bytes()[0] = 7
		read := c.event()
		var seen byte
		start := time.Now()
		c.no(compute.Run(time.Millisecond, func() error { seen = m.Bytes()[0]; return nil }))
		c.no(compute.Record(read))
		c.no(copies.Wait(read))
		c.no(compute.Run(time.Second, idle)) // queued after Record: no one waits for it
		c.no(compute.Record(read))           // nor does a waiter for the previously recorded point
		c.no(copies.Upload(m, 0, host.Bytes()))
		c.no(copies.Synchronize())
		c.took(start, time.Millisecond+time.Microsecond)
		if seen != 0 || m.Bytes()[0] != 7 {
			c.Errorf("the work saw %d, and then the block holds %d", seen, m.Bytes()[0])
		}
		c.no(compute.Close()) // waits
		c.took(start, time.Millisecond+time.Second)
	})
}

func TestFailedWorkLosesTheContext(t *testing.T) {
	broken := errors.New("the card fell off")
	for name, fail := range map[string]func(c *card, s *gputest.Stream){
		"injected": func(c *card, s *gputest.Stream) { c.Context.Fail(gputest.Upload, 2, broken) },
		"by work":  func(c *card, s *gputest.Stream) { c.no(s.Run(time.Microsecond, func() error { return broken })) },
	} {
		t.Run(name, func(t *testing.T) {
			onCard(t, func(c *card) {
				s, other := c.stream(), c.stream()
				m, host, e := c.memory(1000), c.pinned(1000), c.event()
				fail(c, s)
				c.no(s.Upload(m, 0, host.Bytes())) // all are queued
				c.no(s.Upload(m, 0, host.Bytes()))
				c.no(s.Run(time.Hour, idle))
				c.no(s.Record(e))
				c.no(other.Wait(e))
				start := time.Now()
				synctest.Wait()
				time.Sleep(time.Second)
				c.took(start, time.Second) // and none waits forever
				_, happened := e.Happened()
				_, allocated := c.Allocate(1)
				for what, err := range map[string]error{
					"Synchronize": s.Synchronize(), "Synchronize of another stream": other.Synchronize(),
					"event's Synchronize": e.Synchronize(), "Happened": happened, "Allocate": allocated,
					"Upload": other.Upload(m, 0, host.Bytes()), "Bind": c.Bind(),
				} {
					if !errors.Is(err, broken) {
						c.Errorf("%s: %v, not the failure", what, err)
					}
				}
				for _, x := range []interface{ Close() error }{s, other, e, m, host} {
					if err := x.Close(); !errors.Is(err, broken) {
						c.Errorf("Close of %T: %v, not the failure", x, err)
					}
				}
				c.no(c.Close()) // they are closed anyway
			})
		})
	}
}

func TestFailedCalls(t *testing.T) {
	onCard(t, func(c *card) {
		broken := errors.New("no")
		c.Context.Fail(gputest.Allocate, 2, broken)
		c.no(c.memory(1).Close())
		if m, err := c.Allocate(1); !errors.Is(err, broken) || m != nil {
			c.Errorf("Allocate: %v, %v, want the failure", m, err)
		}
		m := c.memory(1<<20 - 1) // the context is not lost
		if free, total, err := c.MemInfo(); free != 1 || total != 1<<20 || err != nil {
			c.Errorf("%d bytes of %d are free, %v", free, total, err)
		}
		if m, err := c.Allocate(2); !errors.Is(err, gpu.ErrOutOfMemory) || m != nil {
			c.Errorf("Allocate on a full card: %v, %v, want gpu.ErrOutOfMemory", m, err)
		}
		c.no(m.Close())
		c.no(c.memory(1 << 20).Close())
	})
}

func TestMisuse(t *testing.T) {
	for want, misuse := range map[string]func(c *card) error{
		"upload: 10 bytes that are not pinned": func(c *card) error {
			return c.stream().Upload(c.memory(10), 0, make([]byte, 10))
		},
		"download: 10 bytes that are not pinned": func(c *card) error {
			return c.stream().Download(make([]byte, 10), c.memory(10), 0)
		},
		"upload: 20 bytes at 90 of a block of 100": func(c *card) error {
			return c.stream().Upload(c.memory(100), 90, c.pinned(20).Bytes())
		},
		"clear: memory that is not this GPU's": func(c *card) error {
			other := gputest.New(gputest.Config{})
			c.no(other.Bind())
			m, err := other.Allocate(10)
			c.no(err)
			return c.stream().Clear(m, 0, 10)
		},
		"clear: memory: already closed": func(c *card) error {
			m := c.memory(10)
			c.no(m.Close())
			return c.stream().Clear(m, 0, 10)
		},
		"close pinned memory: queued or running work uses it 1 times": func(c *card) error {
			s, host := c.stream(), c.pinned(1000)
			c.no(s.Upload(c.memory(1000), 0, host.Bytes()))
			time.Sleep(999)
			err := host.Close()
			c.no(s.Synchronize())
			c.no(host.Close())
			return err
		},
		"upload: the bytes changed while they were copied": func(c *card) error {
			s, host := c.stream(), c.pinned(1000)
			c.no(s.Upload(c.memory(1000), 0, host.Bytes()))
			time.Sleep(500)
			host.Bytes()[999]++
			return s.Synchronize()
		},
		"make a stream: the calling thread is not bound to the GPU": func(c *card) error {
			err := make(chan error)
			go func() {
				runtime.LockOSThread()
				_, e := c.NewStream()
				err <- e
			}()
			return <-err
		},
		"close the GPU before everything that was created with it: open are 1 of GPU memory, 2 of stream": func(
			c *card,
		) error {
			c.memory(1)
			c.stream()
			c.stream()
			return c.Close()
		},
	} {
		t.Run(want, func(t *testing.T) {
			onCard(t, func(c *card) {
				err := misuse(c)
				if !errors.Is(err, gputest.ErrMisuse) || !strings.HasSuffix(err.Error(), ": "+want) {
					c.Errorf("error %v", err)
				}
				if len(c.misuses) != 1 || !errors.Is(err, c.misuses[0]) {
					c.Errorf("Config.Misuse heard of %v, want %v", c.misuses, err)
				}
			})
		})
	}
}
