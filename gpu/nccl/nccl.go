// Package nccl opens NVIDIA's library for collective operations, by which the GPUs of several processes sum their
// gradients:
//
//	library, err := nccl.Open(ort.Library())
//	...
//	id, err := library.NewID() // on one rank, which gives it to the others
//	...
//	c, err := library.Join(id, rank, size) // on each rank, in the current context of the thread
//	...
//	err = c.AllReduce(stream.Pointer(), nccl.Range{Address: address, Elements: n, DType: nccl.F32})
//
// It is part of every build: Open loads libnccl.so.2, which only training on several GPUs needs. xtts-host fetch nccl
// fetches the library. The package sets nothing in the environment; NCCL reads its own variables (NCCL_...) there.
//
// # Bits
//
// In every run of one version of NCCL with the same ranks, variables and links between the GPUs, a sum has the same
// bits, and all ranks have those of each other. With more than two ranks they depend on how the values are divided into
// ranges, and a sum of bf16 may be rounded to bf16 whenever a rank has added its value.
//
// # When a rank dies
//
// The work of the others waits for ever, and so does a thread that waits for their streams. If the sum is part of a
// captured CUDA graph, NCCL notices nothing: [Comm.AsyncError] stays nil. So a program must notice itself that a rank
// is gone, and then call [Comm.Abort] on another thread than the one that waits.
//
// Neither Abort nor Close returns while a CUDA graph lives that has captured an operation of the communicator. So the
// order of an end is: Abort, in a goroutine of its own; the stream becomes idle after some 40 ms; destroy the graphs,
// with ONNX Runtime the sessions; Abort returns. What the work has written until then may be half of a sum.
package nccl

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	loader "github.com/xtts-host/xtts-host/gpu/library"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Name is the name of the library. All releases of NCCL 2 have it.
const Name = "libnccl.so.2"

// Library is a loaded NCCL, which stays loaded. It is safe for concurrent use.
type Library struct {
	calls library
	path  string
	code  int // of the version
}

// Open loads NCCL from the folder of another library, such as ONNX Runtime's, or, if it is not there, from where the
// dynamic loader finds it. A name without a folder has no such folder.
func Open(beside string) (*Library, error) {
	l, err := open(loader.Beside(Name, beside))
	if err != nil {
		return nil, hint.Errorf(hint.Command("fetch nccl fetches NCCL"), "load NCCL: %w", err)
	}
	return l, nil
}

// Version is that of NCCL, such as "2.28.9".
func (l *Library) Version() string {
	return fmt.Sprintf("%d.%d.%d", l.code/10000, l.code/100%100, l.code%100)
}

// Path is the file of the library.
func (l *Library) Path() string { return l.path }

// ID is what the ranks of one communicator have in common: an ncclUniqueId. It contains the address of the process that
// made it.
type ID [128]byte

// NewID returns the ID of a new communicator. The process that calls it must live until all ranks have joined.
func (l *Library) NewID() (ID, error) { return l.calls.id() }

// Join returns the communicator of this process as the rank of so many, on the GPU whose context is current on the
// calling thread. It returns when all ranks have joined, within half a second on one machine, and not at all while one
// is missing: then only the end of the process helps.
//
// The first operation of a communicator makes connections, which no CUDA graph can capture: run one before.
func (l *Library) Join(id ID, rank, size int) (*Comm, error) {
	c, err := l.calls.join(id, rank, size)
	if err != nil {
		return nil, fmt.Errorf("join as rank %d of %d: %w", rank, size, err)
	}
	return &Comm{library: &l.calls, comm: c}, nil
}

// DType is the type of the values of a range, by its number in ncclDataType_t.
type DType int

// The types of what is trained.
const (
	F32  DType = 7
	BF16 DType = 9
)

// Range is memory of the GPU: so many elements from an address on.
type Range struct {
	Address  uint64
	Elements int
	DType    DType
}

// Comm is a rank's end of a communicator, in the CUDA context in which it joined. Its owner calls Close or Abort in the
// end.
//
// All ranks queue the same operations in the same order, on ranges of the same sizes and types: NCCL does not compare
// them. One thread queues, with the context current; the other methods may be called meanwhile.
type Comm struct {
	library *library
	comm    comm
	ended   atomic.Bool
	using   sync.RWMutex // NCCL frees the communicator at its end: read-locked during a call
}

// ErrEnded is the error of a communicator that was aborted or closed.
var ErrEnded = errors.New("the NCCL communicator was aborted or closed")

// AllReduce queues on a CUstream that each range is replaced by its sum over all ranks, as one group. The memory must
// stay until the work is done. CUDA graphs capture it.
func (c *Comm) AllReduce(stream uintptr, ranges ...Range) error {
	return c.call(func() error { return c.library.all(c.comm, false, stream, ranges) })
}

// Broadcast queues on a CUstream that each range is replaced by that of rank 0, as AllReduce does.
func (c *Comm) Broadcast(stream uintptr, ranges ...Range) error {
	return c.call(func() error { return c.library.all(c.comm, true, stream, ranges) })
}

// AsyncError returns what has failed since an operation was queued, such as a connection to another machine, or nil. It
// says nothing of a rank that died while operations were in a CUDA graph.
func (c *Comm) AsyncError() error {
	return c.call(func() error { return c.library.asyncError(c.comm) })
}

// call keeps an end from freeing the communicator during a call of NCCL.
func (c *Comm) call(f func() error) error {
	c.using.RLock()
	defer c.using.RUnlock()
	if c.ended.Load() {
		return ErrEnded
	}
	if err := f(); err != nil || !c.ended.Load() {
		return err
	}
	return ErrEnded // the call has returned because of an abort
}

// Abort ends all work of the communicator, also that of a rank that waits for one that is gone, and frees it. Call it
// with the context current on the thread. See the package's text on when it returns. Only the first call of Abort and
// Close does something.
func (c *Comm) Abort() error {
	return c.end(func() error { return c.library.abort(c.comm) })
}

// Close frees the communicator after all its work is done. All ranks call it. It must not be called after the death of
// a rank.
func (c *Comm) Close() error {
	return c.end(func() error { return c.library.destroy(c.comm) })
}

// grace is for calls that are in progress at an end. One that waits for a rank that is gone returns after the end only.
const grace = time.Second

func (c *Comm) end(f func() error) error {
	if c.ended.Swap(true) {
		return nil
	}
	free := c.using.TryLock()
	for began := time.Now(); !free && time.Since(began) < grace; free = c.using.TryLock() {
		time.Sleep(time.Millisecond)
	}
	if free {
		c.using.Unlock() // nobody enters any more
	}
	return f()
}
