// Package engine is the device of package gpustage over a gpu.Context and ONNX Runtime.
//
//	device, err := engine.New(engine.Config{Context: context, MemoryLimit: 2 << 30})
//	// ...
//	program, err := device.Load(graph)
//
// A thread that is bound to the GPU makes everything and queues all work: copies to the card on one stream; runs, and copies back, on
// another that waits for the first by an event. A second thread waits for what is queued and wakes the callers, so that the next batch
// is queued meanwhile. A lane is what one batch under way needs: memory on the card and pinned memory, both laid out for each
// bucket when the graph is loaded, with bindings made once.
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

// Config describes a device. Context is needed.
type Config struct {
	// Context is the GPU. The device closes it.
	Context gpu.Context
	// OnHost has the CPU compute, which only a Context can do whose memory is the host's, as that of a test.
	OnHost bool
	// MemoryLimit is how many bytes of the card the process may use, with CUDA's own; 0 is no limit.
	MemoryLimit int
	// Lost, if set, is told once that the GPU failed. No work that is queued from then on succeeds in this process.
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

	// What follows is the queueing goroutine's.
	closers
	compute, transfer gpu.Stream
	async             *ort.RunOptions
	graphs            map[string]*graph
	pinned            map[*byte]int // sizes of what is registered
	own               int           // bytes of the card that were allocated here
}

var _ gpustage.Device = (*Device)(nil)

// New opens a device. ONNX Runtime has been initialised. After an error the context is still the caller's.
func New(cfg Config) (*Device, error) {
	d := &Device{config: cfg, tasks: make(chan func()), waits: make(chan *call, 64), closed: make(chan struct{}), graphs: map[string]*graph{}, pinned: map[*byte]int{}}
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

// queue runs all that is to be done on the GPU's thread.
func (d *Device) queue(started chan<- error) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
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

// wait wakes the callers, in the order in which their work was queued.
func (d *Device) wait(started chan<- error) {
	runtime.LockOSThread()
	started <- d.config.Context.Bind()
	for c := range d.waits {
		err := c.lane.computed.Synchronize()
		d.check(err)
		c.done <- err
	}
}

// check takes what waiting for the GPU returned. CUDA tells of failed work there, and the context is of no use then.
func (d *Device) check(err error) {
	if err != nil && d.config.Lost != nil {
		d.lost.Do(func() { d.config.Lost(err) })
	}
}

// do has the queueing goroutine call f.
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
	// In f32 nothing is rounded to TF32: stages are held to golden numbers.
	d.cuda = &ort.CUDA{Device: ort.Place(d.config.Context.Device().Index), Stream: d.compute.Pointer(), Whole: true}
	if d.async, err = ort.NewRunOptions(); err != nil {
		return err
	}
	d.add(d.async.Close)
	return d.async.Async()
}

// place is where ONNX Runtime finds the card's memory.
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

// Close implements gpustage.Device. Programs are closed before.
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

// closers close what was made, the last first.
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
