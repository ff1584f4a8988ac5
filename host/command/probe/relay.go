package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Relay is a copy from one slot of a ring to another, by a process that maps the ring like a plugin.
type Relay struct {
	// From and To are slots, Bytes is the number of bytes to copy.
	From, To, Bytes int
	// UUID is the GPU that the bytes go through, or empty for none.
	UUID string
}

// Relayed is the result of a Relay.
type Relayed struct {
	// Device is the GPU that the bytes went through, or the zero Device.
	Device gpu.Device
	// In is the time of the copy from the ring to the GPU, Out the time of the copy back. Without a GPU, Out is the
	// time of the only copy. They are medians of several copies.
	In, Out time.Duration
}

// Relay makes a process copy. The process sees only the named GPU, so it is the only process of the run with a context
// there. When Relay returns, the process has ended. The caller owns both slots.
func (c Command) Relay(ctx context.Context, r *ring.Ring, what Relay) (done Relayed, err error) {
	arg, err := json.Marshal(relayRequest{what, r.Slots(), r.SlotSize()})
	if err != nil {
		return done, err
	}
	env := []string{"CUDA_VISIBLE_DEVICES=" + what.UUID, "CUDA_DEVICE_ORDER=PCI_BUS_ID"} // as plugins have them
	return done, c.ask(ctx, question{name: probeRelay, arg: string(arg), env: env, files: []*os.File{r.File()}}, &done)
}

// relayRequest is the argument of the probe.
type relayRequest struct {
	Relay
	Slots, SlotSize int
}

func serveRelay(arg string, file *os.File) (done Relayed, err error) {
	var q relayRequest
	if err := json.Unmarshal([]byte(arg), &q); err != nil {
		return done, fmt.Errorf("argument of %s: %w", probeRelay, err)
	}
	r, err := ring.Attach(file, q.Slots, q.SlotSize)
	if err != nil {
		return done, err
	}
	defer r.Close()
	from, to := r.Slot(q.From)[:q.Bytes], r.Slot(q.To)[:q.Bytes]
	if q.UUID != "" {
		return throughGPU(q.UUID, r, from, to)
	}
	done.Out, err = median(func() error { copy(to, from); return nil })
	return done, err
}

// throughGPU copies like a stage on the data GPU: it reads from the ring to the GPU and writes from the GPU to the
// ring.
func throughGPU(uuid string, r *ring.Ring, from, to []byte) (done Relayed, err error) {
	runtime.LockOSThread() // for the life of the process, which is short
	c, err := cuda.Open(uuid)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Bind(); err != nil {
		return done, err
	}
	pinned, err := c.Register(r.Bytes())
	if err != nil {
		return done, fmt.Errorf("pin the ring: %w", err)
	}
	defer func() { err = errors.Join(err, pinned.Close()) }()
	stream, err := c.NewStream()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	mem, err := c.Allocate(len(from))
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	done.Device = c.Device()
	if done.In, err = median(func() error {
		return errors.Join(stream.Upload(mem, 0, from), stream.Synchronize())
	}); err != nil {
		return done, err
	}
	done.Out, err = median(func() error { return errors.Join(stream.Download(to, mem, 0), stream.Synchronize()) })
	return done, err
}

// copies is the number of times that each copy is made: the first one warms up, and others may be disturbed.
const copies = 9

// median returns the median time of a copy.
func median(copy func() error) (time.Duration, error) {
	times := make([]time.Duration, copies)
	for i := range times {
		began := time.Now()
		if err := copy(); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[copies/2], nil
}
