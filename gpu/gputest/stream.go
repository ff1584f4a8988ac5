package gputest

import (
	"bytes"
	"cmp"
	"slices"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
)

// Stream is a queue of the fake card. Each operation has a goroutine that first waits for the previous operation. Close
// waits for the last one.
type Stream struct {
	c      *Context
	last   *point // nil before the first operation
	closed bool
}

// point is an operation in a stream.
type point struct {
	done chan struct{} // closed when it is done
	at   time.Time     // when that was
}

func (p *point) happened() bool {
	if p == nil {
		return true
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *point) wait() {
	if p != nil {
		<-p.done
	}
}

func (c *Context) NewStream() (gpu.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("make a stream"); err != nil {
		return nil, err
	}
	c.open["stream"]++
	s := &Stream{c: c}
	c.streams = append(c.streams, s)
	return s, nil
}

// enter starts every call. The caller holds the context's mu.
func (s *Stream) enter(op Op) error {
	if s.closed {
		return s.c.misuse("%s: stream: %w", op, gpu.ErrClosed)
	}
	return s.c.enter(op)
}

// add queues an operation. The caller holds the context's mu.
func (s *Stream) add(work func()) *point {
	before, p := s.last, &point{done: make(chan struct{})}
	s.last = p
	go func() {
		before.wait()
		work()
		p.at = time.Now()
		close(p.done)
	}()
	return p
}

// queue queues an operation that takes some time: begin and end are called when it begins and ends. The memory it uses
// is in use until then. The caller holds the context's mu.
func (s *Stream) queue(op Op, takes time.Duration, begin func(), end func() error, named ...*Memory) {
	injected := s.c.injected(op)
	for _, m := range named {
		m.users++
	}
	s.add(func() {
		err := s.c.failed()
		if err == nil {
			begin()
			time.Sleep(takes)
			if err = injected; err == nil {
				err = end()
			}
		}
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		s.c.lost = cmp.Or(s.c.lost, err)
		for _, m := range named {
			m.users--
		}
	})
}

// failed returns the error by which the context was lost.
func (c *Context) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// onCard returns size bytes of m at an offset. The caller holds the context's mu.
func (s *Stream) onCard(op Op, m gpu.Memory, offset, size int) ([]byte, *Memory, error) {
	if offset < 0 || size < 0 || size > m.Size() || offset > m.Size()-size {
		return nil, nil, s.c.misuse("%s: %d bytes at %d of a block of %d", op, size, offset, m.Size())
	}
	pointer := m.Pointer()
	if pointer == 0 {
		return nil, nil, s.c.misuse("%s: memory: %w", op, gpu.ErrClosed)
	}
	b := s.c.find(pointer+uintptr(offset), size, cardMemory)
	if b == nil {
		return nil, nil, s.c.misuse("%s: memory that is not this GPU's", op)
	}
	start := int(pointer-addressOf(b.mem)) + offset
	return b.mem[start : start+size], b, nil
}

func (s *Stream) copyHost(op Op, m gpu.Memory, offset int, host []byte) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter(op); err != nil {
		return err
	}
	card, cardBlock, err := s.onCard(op, m, offset, len(host))
	if err != nil || len(host) == 0 {
		return err
	}
	hostBlock := s.c.find(addressOf(host), len(host), hostMemory, mappedMemory)
	if hostBlock == nil {
		return s.c.misuse("%s: %d bytes that are not pinned", op, len(host))
	}
	dst, src := card, host
	if op == Download {
		dst, src = host, card
	}
	var before []byte
	begin := func() { before = slices.Clone(src) }
	end := func() error {
		if !bytes.Equal(before, src) {
			return s.c.misuse("%s: the bytes changed while they were copied", op)
		}
		copy(dst, src)
		return nil
	}
	s.queue(op, s.c.takes(len(host)), begin, end, cardBlock, hostBlock)
	return nil
}

func (s *Stream) Upload(dst gpu.Memory, offset int, src []byte) error {
	return s.copyHost(Upload, dst, offset, src)
}

func (s *Stream) Download(dst []byte, src gpu.Memory, offset int) error {
	return s.copyHost(Download, src, offset, dst)
}

func (s *Stream) Copy(dst gpu.Memory, dstOffset int, src gpu.Memory, srcOffset, size int) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter(Copy); err != nil {
		return err
	}
	to, toBlock, err := s.onCard(Copy, dst, dstOffset, size)
	if err != nil {
		return err
	}
	from, fromBlock, err := s.onCard(Copy, src, srcOffset, size)
	if err != nil {
		return err
	}
	s.queue(Copy, 0, nothing, func() error { copy(to, from); return nil }, toBlock, fromBlock)
	return nil
}

func (s *Stream) Clear(dst gpu.Memory, offset, size int) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter(Clear); err != nil {
		return err
	}
	to, block, err := s.onCard(Clear, dst, offset, size)
	if err != nil {
		return err
	}
	s.queue(Clear, 0, nothing, func() error { clear(to); return nil }, block)
	return nil
}

// Run queues work that takes some time, like that of a library that uses the stream's Pointer. f is called at its end.
// If f returns an error, the context is lost, as with Context.Fail.
func (s *Stream) Run(takes time.Duration, f func() error) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter(Run); err != nil {
		return err
	}
	s.queue(Run, takes, nothing, f)
	return nil
}

func nothing() {}

// Pointer returns a unique number of the stream.
func (s *Stream) Pointer() uintptr { return uintptr(unsafe.Pointer(s)) }

func (s *Stream) Record(e gpu.Event) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	const op = "record an event"
	if err := s.enter(op); err != nil {
		return err
	}
	ev := e.(*Event)
	if err := ev.enter(op); err != nil {
		return err
	}
	ev.last = s.add(nothing)
	return nil
}

func (s *Stream) Wait(e gpu.Event) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	const op = "wait for an event"
	if err := s.enter(op); err != nil {
		return err
	}
	ev := e.(*Event)
	if err := ev.enter(op); err != nil {
		return err
	}
	s.add(ev.last.wait)
	return nil
}

func (s *Stream) Idle() (bool, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter("ask a stream"); err != nil {
		return false, err
	}
	return s.last.happened(), nil
}

func (s *Stream) Synchronize() error {
	s.c.mu.Lock()
	err := s.enter("wait for a stream")
	last := s.last
	s.c.mu.Unlock()
	if err != nil {
		return err
	}
	last.wait()
	return s.c.failed()
}

// Close waits for the queued work.
func (s *Stream) Close() error {
	s.c.mu.Lock()
	if s.closed {
		s.c.mu.Unlock()
		return nil
	}
	err := s.enter("close a stream")
	s.closed = true
	s.c.open["stream"]--
	s.c.streams = slices.DeleteFunc(s.c.streams, func(o *Stream) bool { return o == s })
	last := s.last
	s.c.mu.Unlock()
	last.wait()
	return cmp.Or(err, s.c.failed())
}
