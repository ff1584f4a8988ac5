package train

import (
	"errors"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Device is what a model computes on. The zero Device is the CPU.
type Device struct {
	// Context is the GPU; nil on the CPU. It outlives the model.
	Context gpu.Context
	// Compute is the stream that graphs run on, Transfer the one that batches cross on beside them.
	Compute, Transfer gpu.Stream
	// CUDA has ONNX Runtime compute on the GPU of Context, on the stream Compute. Without it the CPU provider computes, which
	// only a Context can do whose memory is the host's, as that of a test.
	CUDA *ort.CUDA
	// Timer, if any, measures what the GPU does. It outlives the model.
	Timer *Timer
	// Deterministic takes slower kernels that give the same bits in every run.
	Deterministic bool
}

// onGPU reports whether memory has two sides.
func (d *Device) onGPU() bool { return d.Context != nil }

// place is where ONNX Runtime finds the device's memory.
func (d *Device) place() ort.Place {
	if d.CUDA == nil {
		return ort.Host
	}
	return d.CUDA.Device
}

// chunks cuts a range into parts for one run of a graph each.
func (d *Device) chunks(r ortgraphs.Range) (parts []ortgraphs.Range) {
	size := chunk
	if d.onGPU() {
		size = gpuChunk
	}
	for from := r.Start; from < r.End; from += size {
		parts = append(parts, ortgraphs.Range{Start: from, End: min(from+size, r.End)})
	}
	return parts
}

// arrive waits for the stream Transfer.
func (d *Device) arrive() error {
	// Such a copy takes some 50 µs, and a thread that sleeps meanwhile is woken 40 µs late.
	for began := time.Now(); time.Since(began) < 200*time.Microsecond; {
		if done, err := d.Transfer.Idle(); done || err != nil {
			return err
		}
	}
	return d.Transfer.Synchronize()
}

// staging is the pinned memory through which arenas reach the host and come back: large enough for full speed, small beside
// them.
const staging = 32 << 20

// block is memory that graphs work on, with a side for Go. On the CPU both are the same memory. On a GPU Go's side is a copy,
// which pull and push bring up to date.
type block struct {
	size int
	host []byte     // on a GPU nil before the first pull or push of an arena
	dev  gpu.Memory // nil on the CPU
}

// pull copies what is on the GPU to Go's side, after all work queued so far.
func (m *memory) pull(b *block) error {
	return m.across(b, func(stage []byte, at int) error {
		if err := m.device.Compute.Download(stage, b.dev, at); err != nil {
			return err
		}
		err := m.device.Compute.Synchronize()
		copy(b.host[at:], stage)
		return err
	})
}

// push copies Go's side to the GPU.
func (m *memory) push(b *block) error {
	return m.across(b, func(stage []byte, at int) error {
		copy(stage, b.host[at:])
		if err := m.device.Compute.Upload(b.dev, at, stage); err != nil {
			return err
		}
		return m.device.Compute.Synchronize()
	})
}

// across moves a block piece by piece through pinned memory.
func (m *memory) across(b *block, move func(stage []byte, at int) error) (err error) {
	if !m.device.onGPU() {
		return nil
	}
	if err := m.mirror(b); err != nil {
		return err
	}
	stage, err := m.device.Context.AllocateHost(min(staging, b.size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	for at := 0; at < b.size; at += staging {
		if err := move(stage.Bytes()[:min(staging, b.size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// mirror gives a block of a GPU its side for Go.
func (m *memory) mirror(b *block) error {
	if b.host != nil {
		return nil
	}
	mem, err := ort.NewBuffer(b.size)
	if err != nil {
		return err
	}
	m.add(mem.Close)
	b.host = mem.Bytes()
	return nil
}
