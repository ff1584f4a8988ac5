// Package engine implements the device of package gpustage with a gpu.Context and ONNX Runtime.
//
//	device, err := engine.New(engine.Config{Context: context, MemoryLimit: 2 << 30})
//	// ...
//	program, err := device.Load(graph)
//
// One thread, bound to the GPU, creates all resources and queues all work: transfers to the GPU on one stream; runs and
// transfers back on another stream, which waits for the first by an event. A second thread waits for queued work and
// wakes the callers, so the next batch is queued meanwhile. A lane holds the resources of one batch in flight: GPU
// memory and pinned memory, laid out for each bucket when the graph is loaded, with bindings that are created once.
package engine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
)

// Config describes a device. Only Context is required.
type Config struct {
	// Context is the GPU. The device closes it.
	Context gpu.Context
	// OnHost makes the CPU compute. This requires a Context whose memory is host memory, as in tests.
	OnHost bool
	// MemoryLimit is the GPU memory that the process may use, in bytes and including CUDA's own; 0 means no limit.
	MemoryLimit int
	// Lost, if not nil, is called once when the GPU has failed. Work that is queued after that fails.
	Lost func(error)
}

// Device implements gpustage.Device.
type Device struct {
	config Config
	cuda   *ort.CUDA // nil with OnHost
	tasks  chan func()
	waits  chan *call
	ended  sync.WaitGroup // of both goroutines
	close  sync.Once
	lost   sync.Once
	closed chan struct{}

	// The fields below belong to the queueing goroutine.
	closers
	compute, transfer gpu.Stream
	async             *ort.RunOptions
	graphs            map[identity]*graph
	pinned            map[*byte]int // sizes of the registered memory
	own               int           // bytes of GPU memory that were allocated here
}

var _ gpustage.Device = (*Device)(nil)

// New opens a device. ONNX Runtime must be initialized. If New fails, the caller still owns the context.
func New(cfg Config) (*Device, error) {
	d := &Device{
		config: cfg, tasks: make(chan func()), waits: make(chan *call, 64), closed: make(chan struct{}),
		graphs: map[identity]*graph{}, pinned: map[*byte]int{},
	}
	started := make(chan error)
	d.ended.Go(func() { d.queue(started) })
	d.ended.Go(func() { d.wait(started) })
	err := errors.Join(<-started, <-started)
	if err == nil {
		err = d.do(d.open)
	}
	if err != nil {
		return nil, errors.Join(err, d.do(d.closers.Close), d.stop())
	}
	return d, nil
}

// queue runs all work of the GPU's thread.
func (d *Device) queue(started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	started <- d.config.Context.Bind()
	for {
		select {
		case task := <-d.tasks:
			task()
		case <-d.closed:
			close(d.waits)
			return
		}
	}
}

// wait wakes the callers in the order in which their work was queued.
func (d *Device) wait(started chan<- error) {
	runtime.LockOSThread()
	started <- d.config.Context.Bind()
	for c := range d.waits {
		err := c.lane.computed.Synchronize()
		d.check(err)
		c.done <- err
	}
}

// check examines the result of waiting for the GPU. CUDA reports failed work there, and the context is unusable
// afterwards.
func (d *Device) check(err error) {
	if err != nil && d.config.Lost != nil {
		d.lost.Do(func() { d.config.Lost(err) })
	}
}

// do runs f on the queueing goroutine.
func (d *Device) do(f func() error) error {
	done := make(chan error, 1)
	select {
	case d.tasks <- func() { done <- f() }:
		return <-done
	case <-d.closed:
		return fmt.Errorf("GPU %s: %w", d.config.Context.Device().UUID, gpu.ErrClosed)
	}
}

func (d *Device) open() (err error) {
	for _, s := range []*gpu.Stream{&d.compute, &d.transfer} {
		if *s, err = d.config.Context.NewStream(); err != nil {
			return err
		}
		d.add((*s).Close)
	}
	if d.config.OnHost {
		return nil
	}
	// In f32, nothing is rounded to TF32, because golden numbers test the stages.
	d.cuda = &ort.CUDA{
		Device: ort.Place(d.config.Context.Device().Index), Stream: d.compute.Pointer(),
		Wait: d.config.Context.Synchronize,
	}
	if d.async, err = ort.NewRunOptions(); err != nil {
		return err
	}
	d.add(d.async.Close)
	return d.async.Async()
}

// place is where ONNX Runtime finds the GPU memory.
func (d *Device) place() ort.Place {
	if d.cuda == nil {
		return ort.Host
	}
	return d.cuda.Device
}

// Pin implements gpustage.Device.
func (d *Device) Pin(memory []byte) error {
	return d.do(func() error {
		start := unsafe.SliceData(memory)
		if size, ok := d.pinned[start]; ok && size == len(memory) {
			return nil
		}
		r, err := d.config.Context.Register(memory)
		if err != nil {
			return err
		}
		d.pinned[start] = len(memory)
		d.add(r.Close)
		return nil
	})
}

// Close implements gpustage.Device. All programs must be closed before.
func (d *Device) Close() error {
	var err error
	d.close.Do(func() {
		err = errors.Join(d.do(d.closers.Close), d.stop(), d.config.Context.Close())
	})
	return err
}

// stop ends the goroutines.
func (d *Device) stop() error {
	close(d.closed)
	d.ended.Wait()
	return nil
}

// closers closes resources in the reverse order of their creation.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) Close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}
