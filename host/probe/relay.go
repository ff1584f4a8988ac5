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

// Relay is a copy from one slot of a ring to another, by a process that maps the ring as a plugin does.
type Relay struct {
	// From and To are slots, Bytes is how much of them is copied.
	From, To, Bytes int
	// UUID names the GPU that the bytes go through; empty: none.
	UUID string
}

// Relayed is how that went.
type Relayed struct {
	// Device is the GPU that it went through; the zero Device without one.
	Device gpu.Device
	// In is the time of the copy from the ring to the GPU, Out of that back. Without a GPU Out is that of the only copy. They are
	// medians of some copies.
	In, Out time.Duration
}

// Relay has a process copy. It sees no GPU but the one that is named, and so is the only one of ours with a context there; when
// Relay returns it has ended. The caller owns both slots.
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

// throughGPU copies as a stage on the data GPU does: what it reads crosses to the GPU, what it writes comes back.
func throughGPU(uuid string, r *ring.Ring, from, to []byte) (done Relayed, err error) {
	runtime.LockOSThread() // for the process's life, which is short
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
	if done.In, err = median(func() error { return errors.Join(stream.Upload(mem, 0, from), stream.Synchronize()) }); err != nil {
		return done, err
	}
	done.Out, err = median(func() error { return errors.Join(stream.Download(to, mem, 0), stream.Synchronize()) })
	return done, err
}

// copies is how often each copy is made: the first wakes what sleeps, and one of the others may be disturbed.
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
