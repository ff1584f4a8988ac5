// Package device opens and configures the model GPU: it creates the context and the streams, pins the ring, and decides
// whether the training graph can be captured.
package device

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Device is the model GPU. The zero Device is the CPU.
type Device struct {
	train.Device
	ring gpu.Registration
}

// Config selects the GPU and configures ONNX Runtime on it.
type Config struct {
	UUID          string
	Ring          []byte // it is pinned, for transfers at full speed
	MemoryLimit   int    // limit of ONNX Runtime's arenas in bytes; 0: none
	TF32          bool
	Deterministic bool
}

// Open creates the context and the streams of a GPU, and pins the ring. The calling thread stays bound to the GPU, so
// the goroutine stays locked to it. After an error nothing is open.
func Open(c Config) (*Device, error) {
	runtime.LockOSThread()
	context, err := cuda.Open(c.UUID)
	if err != nil {
		return nil, err
	}
	return open(context, c)
}

// open makes a Device of a context, which it closes after an error.
func open(context gpu.Context, c Config) (_ *Device, err error) {
	d := &Device{Device: train.Device{Context: context}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err = context.Bind(); err != nil {
		return nil, err
	}
	if d.Compute, err = context.NewStream(); err != nil {
		return nil, err
	}
	if d.Transfer, err = context.NewStream(); err != nil {
		return nil, err
	}
	if d.Timer, err = train.NewTimer(d.Device); err != nil {
		return nil, err
	}
	if d.ring, err = context.Register(c.Ring); err != nil {
		return nil, fmt.Errorf("pin the ring: %w", err)
	}
	d.CUDA = &ort.CUDA{
		Device: ort.Place(context.Device().Index), Stream: d.Compute.Pointer(), Wait: context.Synchronize,
		TF32: c.TF32, MemoryLimit: c.MemoryLimit,
	}
	d.Deterministic = c.Deterministic
	return d, nil
}

// LimitMemory changes the limit of ONNX Runtime's arenas for sessions that are created after it.
func (d *Device) LimitMemory(bytes int) {
	if d.CUDA != nil {
		d.CUDA.MemoryLimit = bytes
	}
}

// Full adds the memory use of the GPU to an error about memory.
func (d *Device) Full(err error) error {
	if d.Context == nil || !errors.Is(err, gpu.ErrOutOfMemory) {
		return err
	}
	free, total, asked := d.Context.MemInfo()
	if asked != nil {
		return err
	}
	return fmt.Errorf("%w: %d of its %d MB are free", err, free/gpu.MB, total/gpu.MB)
}

// Enter binds the calling thread to the GPU. The returned function undoes this.
func (d *Device) Enter() func() {
	if d.Context == nil {
		return func() {}
	}
	runtime.LockOSThread()
	d.Context.Bind() // an error here occurs again, and is reported, at the first use
	return runtime.UnlockOSThread
}

// Close releases the GPU. Everything created on it must be closed before. Close is idempotent.
func (d *Device) Close() error {
	if d.Context == nil {
		return nil
	}
	var errs []error
	if d.ring != nil {
		errs = append(errs, d.ring.Close())
	}
	if d.Timer != nil {
		errs = append(errs, d.Timer.Close())
	}
	for _, s := range []gpu.Stream{d.Compute, d.Transfer} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	errs = append(errs, d.Context.Close())
	*d = Device{}
	return errors.Join(errs...)
}
