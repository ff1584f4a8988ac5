package train

import (
	"errors"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Device is the device of a model. The zero Device is the CPU.
type Device struct {
	// Context is the GPU; nil on the CPU. It outlives the model.
	Context gpu.Context
	// Compute is the stream of the graphs, Transfer that of the batches, which are transferred at the same time.
	Compute, Transfer gpu.Stream
	// CUDA makes ONNX Runtime compute on the GPU of Context, on the stream Compute. Without it the CPU provider
	// computes, which requires a Context with memory on the host, such as that of a test.
	CUDA *ort.CUDA
	// Timer, if any, measures the work of the GPU. It outlives the model.
	Timer *Timer
	// Deterministic selects slower kernels that give the same bits in every run.
	Deterministic bool
}

// onGPU reports whether the device has memory apart from the host's.
func (d *Device) onGPU() bool { return d.Context != nil }

// place returns where ONNX Runtime finds the device's memory.
func (d *Device) place() ort.Place {
	if d.CUDA == nil {
		return ort.Host
	}
	return d.CUDA.Device
}

// chunks splits a range into parts, one run of a graph each.
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
	// Such a transfer takes about 50 µs, and a thread that sleeps meanwhile wakes up 40 µs late.
	for began := time.Now(); time.Since(began) < 200*time.Microsecond; {
		if done, err := d.Transfer.Idle(); done || err != nil {
			return err
		}
	}
	return d.Transfer.Synchronize()
}

// block is memory for graphs, with a side for Go. On the CPU both are the same memory. On a GPU, Go's side is a copy,
// which pull and push update.
type block struct {
	size int
	host []byte     // on a GPU nil before the first pull or push of an arena
	dev  gpu.Memory // nil on the CPU
}

// pull copies the GPU's memory to Go's side, after all work queued so far.
func (m *memory) pull(b *block) error {
	if err := m.mirror(b); err != nil {
		return err
	}
	return read(m, b, func(at int, data []byte) error {
		copy(b.host[at:], data)
		return nil
	})
}

// read calls take with pieces of the GPU's memory, after all work queued so far.
func read(m *memory, b *block, take func(at int, data []byte) error) error {
	return readPart(m, b, 0, b.size, take)
}

// readPart is read for so many bytes from a place on. take gets the places in the block.
func readPart(m *memory, b *block, from, size int, take func(at int, data []byte) error) error {
	return m.across(from, size, func(stage []byte, at int) error {
		if err := m.device.Compute.Download(stage, b.dev, at); err != nil {
			return err
		}
		if err := m.device.Compute.Synchronize(); err != nil {
			return err
		}
		return take(at, stage)
	})
}

// push copies the host's side to the GPU.
func (m *memory) push(b *block) error {
	if err := m.mirror(b); err != nil {
		return err
	}
	return m.across(0, b.size, func(stage []byte, at int) error {
		copy(stage, b.host[at:])
		if err := m.device.Compute.Upload(b.dev, at, stage); err != nil {
			return err
		}
		return m.device.Compute.Synchronize()
	})
}

// across moves so many bytes of a block in pieces through pinned memory.
func (m *memory) across(from, size int, move func(stage []byte, at int) error) (err error) {
	if !m.device.onGPU() || size == 0 {
		return nil
	}
	stage, err := m.device.Context.AllocateHost(min(gpu.StagingBytes, size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	for at := from; at < from+size; at += gpu.StagingBytes {
		if err := move(stage.Bytes()[:min(gpu.StagingBytes, from+size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// mirror allocates Go's side of a block, which only a block on a GPU lacks.
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
