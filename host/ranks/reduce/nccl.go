package reduce

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/peers"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// NCCL implements [train.Ranks] between GPUs. Sum and Broadcast queue one group of operations on the model's stream.
// They belong to the goroutine that trains; Abort may be called on any other.
//
// Each part is an operation of its own. NCCL runs the operations of a group together, and parts that follow each other
// in the memory of one rank may be apart in that of another one, whose operations would be others then.
//
// A run ends in this order. Without the death of a rank: the last work is done, the models are closed, and with them
// the CUDA graphs that hold operations of NCCL; then Close; then the GPU is closed. After the death of a rank, which
// another part of the program notices, Abort comes first: then the stream becomes idle, and the thread that trains gets
// [nccl.ErrEnded] from Sum and Broadcast. Values that are on the GPU then must not be saved.
type NCCL struct {
	comm    *nccl.Comm
	context gpu.Context
	stream  gpu.Stream
	ranges  []nccl.Range // of the last call
	group   Group
	near    bool

	mu      sync.Mutex // guards windows and aborted
	windows []*peers.Window
	aborted bool

	once  sync.Once
	ended chan struct{} // closed when NCCL has freed the communicator
	err   error         // of that
}

var _ train.Ranks = (*NCCL)(nil)

// Group is the ranks as one of them sees them.
type Group interface {
	World() world.World
	// All gives each rank what all ranks have passed to it, by rank. All call it together.
	All(own []byte) ([][]byte, error)
}

// NewNCCL takes the communicator of a rank, whose owner it is from now on, on the GPU of a model. near says that all
// ranks can share memory.
func NewNCCL(c *nccl.Comm, d train.Device, g Group, near bool) *NCCL {
	return &NCCL{
		comm: c, context: d.Context, stream: d.Compute, group: g, near: near, ended: make(chan struct{}),
	}
}

// Window implements [train.Reach].
func (n *NCCL) Window(bytes int) (*peers.Window, error) {
	w := n.group.World()
	if !n.near {
		return nil, fmt.Errorf("%w: the ranks do not share memory", peers.ErrApart)
	}
	window, err := peers.Open(peers.Config{
		Context: n.context, Rank: w.Rank, Size: w.Size, Bytes: bytes, Exchange: n.group.All,
	})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.windows = append(n.windows, window)
	if n.aborted {
		window.Abort()
	}
	return window, nil
}

// Sum queues the sums of the parts on a stream.
func (n *NCCL) Sum(on gpu.Stream, parts []train.Part) error {
	err := n.take(parts)
	if err == nil {
		err = n.comm.AllReduce(on.Pointer(), n.ranges...)
	}
	return during("sum over the ranks", err)
}

// Broadcast queues copies of the parts of rank 0.
func (n *NCCL) Broadcast(parts []train.Part) error {
	err := n.take(parts)
	if err == nil {
		err = n.comm.Broadcast(n.stream.Pointer(), n.ranges...)
	}
	return during("copy from rank 0", err)
}

// dtypes are the types of parts.
var dtypes = map[manifest.DType]nccl.DType{manifest.F32: nccl.F32, manifest.BF16: nccl.BF16}

// take makes ranges of parts.
func (n *NCCL) take(parts []train.Part) error {
	n.ranges = n.ranges[:0]
	for i, p := range parts {
		dtype, known := dtypes[p.DType]
		switch {
		case p.Host != nil || p.Address == 0:
			return fmt.Errorf("part %d is not on a GPU", i)
		case !known:
			return fmt.Errorf("part %d is %q, neither f32 nor bf16", i, p.DType)
		}
		n.ranges = append(n.ranges, nccl.Range{Address: p.Address, Elements: p.Elements, DType: dtype})
	}
	return nil
}

// Abort has all work end that waits for another rank, and everything that is queued later fail. It returns at once:
// NCCL itself may be waiting for the models' CUDA graphs until they are closed.
func (n *NCCL) Abort() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.aborted = true
	for _, w := range n.windows {
		w.Abort()
	}
	n.end(n.comm.Abort)
}

// patience is for NCCL to end, which takes some 100 ms, and for the last rank of the machine, which may still write its
// report.
const patience = time.Minute

// Close frees the communicator, or waits until an abort has. It gives up after some seconds: the process ends anyway.
func (n *NCCL) Close() error {
	n.end(n.comm.Close)
	n.mu.Lock()
	windows := n.windows
	n.windows = nil
	n.mu.Unlock()
	var err error
	for _, w := range windows {
		err = errors.Join(err, w.Close())
	}
	select {
	case <-n.ended:
		return errors.Join(err, during("end NCCL", n.err))
	case <-time.After(patience):
		return errors.Join(err, fmt.Errorf("NCCL has not ended after %v", patience))
	}
}

// end calls the first f on a thread of its own.
func (n *NCCL) end(f func() error) {
	n.once.Do(func() {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			n.err = errors.Join(n.context.Bind(), f())
			close(n.ended)
		}()
	})
}

func during(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
