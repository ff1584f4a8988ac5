package cuda

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"gorgonia.org/cu"
)

// stream is a CUstream. Its zero value is a closed stream.
type stream struct{ queue cu.Stream }

func (c *context) NewStream() (gpu.Stream, error) {
	s, err := c.newStream()
	if err != nil {
		return nil, fmt.Errorf("make a stream: %w", err)
	}
	return s, nil
}

func (c *context) newStream() (*stream, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	queue, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return nil, wrap("cuStreamCreate", err)
	}
	return &stream{queue}, nil
}

func (s *stream) Pointer() uintptr { return uintptr(unsafe.Pointer(s.queue.C())) }

func (s *stream) open() error {
	if s.queue == cu.NoStream {
		return fmt.Errorf("stream: %w", gpu.ErrClosed)
	}
	return nil
}

func (s *stream) Upload(dst gpu.Memory, offset int, src []byte) error {
	to, err := s.at(dst, offset, len(src))
	if err == nil && len(src) > 0 {
		err = wrap("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(to, unsafe.Pointer(&src[0]), int64(len(src)), s.queue))
	}
	return during("upload", err)
}

func (s *stream) Download(dst []byte, src gpu.Memory, offset int) error {
	from, err := s.at(src, offset, len(dst))
	if err == nil && len(dst) > 0 {
		err = wrap("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), from, int64(len(dst)), s.queue))
	}
	return during("download", err)
}

func (s *stream) Copy(dst gpu.Memory, dstOffset int, src gpu.Memory, srcOffset, size int) error {
	from, err := s.at(src, srcOffset, size)
	if err != nil {
		return during("copy from", err)
	}
	to, err := s.at(dst, dstOffset, size)
	if err == nil && size > 0 {
		err = wrap("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(to, from, int64(size), s.queue))
	}
	return during("copy to", err)
}

func (s *stream) Clear(dst gpu.Memory, offset, size int) error {
	to, err := s.at(dst, offset, size)
	if err == nil && size > 0 {
		err = wrap("cuMemsetD8Async", cu.MemsetD8Async(to, 0, int64(size), s.queue))
	}
	return during("clear", err)
}

// at returns the address of size bytes of m at an offset, for work on s. CUDA itself does not check the bounds of
// blocks.
func (s *stream) at(m gpu.Memory, offset, size int) (cu.DevicePtr, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	if offset < 0 || size < 0 || size > m.Size() || offset > m.Size()-size {
		return 0, fmt.Errorf("%d bytes at %d of a block of %d", size, offset, m.Size())
	}
	if m.Pointer() == 0 {
		return 0, fmt.Errorf("memory: %w", gpu.ErrClosed)
	}
	return cu.DevicePtr(m.Pointer() + uintptr(offset)), nil
}

func (s *stream) Record(e gpu.Event) error {
	point, err := s.point(e)
	if err == nil {
		err = wrap("cuEventRecord", point.Record(s.queue))
	}
	return during("record an event", err)
}

func (s *stream) Wait(e gpu.Event) error {
	point, err := s.point(e)
	if err == nil {
		err = wrap("cuStreamWaitEvent", s.queue.Wait(point, 0))
	}
	return during("wait for an event", err)
}

// point returns the CUDA event of e, for work on s.
func (s *stream) point(e gpu.Event) (cu.Event, error) {
	if err := s.open(); err != nil {
		return cu.Event{}, err
	}
	ev := e.(*event)
	return ev.point, ev.open()
}

func (s *stream) Idle() (bool, error) {
	err := s.open()
	if err == nil {
		err = s.queue.Query()
		if err == cu.NotReady {
			return false, nil
		}
		err = wrap("cuStreamQuery", err)
	}
	return err == nil, during("ask a stream", err)
}

func (s *stream) Synchronize() error {
	err := s.open()
	if err == nil {
		err = wrap("cuStreamSynchronize", s.queue.Synchronize())
	}
	return during("wait for a stream", err)
}

// Close waits for the queued work, so the memory that it uses can be closed next.
func (s *stream) Close() error {
	if s.open() != nil {
		return nil
	}
	err := s.Synchronize()
	if destroyed := s.queue.Destroy(); err == nil {
		err = during("close a stream", wrap("cuStreamDestroy", destroyed))
	}
	return err
}

// event is a CUevent. Its zero value is a closed event.
type event struct{ point cu.Event }

func (c *context) NewEvent() (gpu.Event, error) {
	err := c.open()
	if err == nil {
		var point cu.Event
		if point, err = cu.MakeEvent(cu.BlockingSyncEvent); err == nil {
			return &event{point}, nil
		}
		err = wrap("cuEventCreate", err)
	}
	return nil, fmt.Errorf("make an event: %w", err)
}

func (e *event) open() error {
	if e.point == (cu.Event{}) {
		return fmt.Errorf("event: %w", gpu.ErrClosed)
	}
	return nil
}

func (e *event) Synchronize() error {
	err := e.open()
	if err == nil {
		err = wrap("cuEventSynchronize", e.point.Synchronize())
	}
	return during("wait for an event", err)
}

func (e *event) Happened() (bool, error) {
	err := e.open()
	if err == nil {
		err = e.point.Query()
		if err == cu.NotReady {
			return false, nil
		}
		err = wrap("cuEventQuery", err)
	}
	return err == nil, during("ask an event", err)
}

// Since is exact to about half a microsecond, which is CUDA's own resolution.
func (e *event) Since(earlier gpu.Event) (time.Duration, error) {
	start := earlier.(*event)
	err := e.open()
	if err == nil {
		err = start.open()
	}
	var ms float64
	if err == nil {
		ms, err = start.point.Elapsed(e.point)
		err = wrap("cuEventElapsedTime", err)
	}
	return time.Duration(ms * float64(time.Millisecond)), during("measure time between events", err)
}

func (e *event) Close() error {
	if e.open() != nil {
		return nil
	}
	return during("close an event", wrap("cuEventDestroy", cu.DestroyEvent(&e.point)))
}
