package together

import (
	"fmt"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/ranks/reduce"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Reducer returns what joins the ranks on their devices; nil in a run of one process.
func (r *Ranks) Reducer() func(train.Device) (train.Ranks, error) {
	if r == nil {
		return nil
	}
	return func(d train.Device) (train.Ranks, error) {
		if d.Context == nil {
			return reduce.TCP{Group: r.Group}, nil
		}
		return r.joinGPUs(d)
	}
}

// joinGPUs makes the communicator of NCCL. When a rank is lost, it is aborted: the GPU would wait for ever.
func (r *Ranks) joinGPUs(d train.Device) (train.Ranks, error) {
	library, err := nccl.Open(ort.Library())
	if err != nil {
		return nil, err
	}
	if err := r.Group.Agree(map[string]string{"NCCL": library.Version()}); err != nil {
		return nil, err
	}
	var id nccl.ID
	if r.Leads() {
		if id, err = library.NewID(); err != nil {
			return nil, err
		}
	}
	text, err := r.Share(id[:])
	if err != nil {
		return nil, err
	}
	copy(id[:], text)
	joined := make(chan struct{})
	go r.endIfStuck(joined)
	comm, err := library.Join(id, r.World().Rank, r.World().Size)
	close(joined)
	if err != nil {
		return nil, err
	}
	sums := reduce.NewNCCL(comm, d, r.Group, r.near)
	go func() {
		select {
		case <-r.Lost():
			sums.Abort()
		case <-r.over:
		}
	}()
	return sums, nil
}

// stuckAfter is how long NCCL may take to join after a rank is lost.
const stuckAfter = 5 * time.Second

// endIfStuck ends the process if a rank is lost while NCCL waits for it: nothing else ends that call. Nothing has been
// trained then.
func (r *Ranks) endIfStuck(joined <-chan struct{}) {
	select {
	case <-joined:
		return
	case <-r.Lost():
	}
	select {
	case <-joined:
	case <-time.After(stuckAfter):
		fmt.Fprintf(os.Stderr, "error: %v\nhint: %s\n", r.Err(), exit.Hint(r.Err()))
		os.Exit(exit.StatusRank)
	}
}
