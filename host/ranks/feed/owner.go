package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Owner is what the first rank of a machine has: the ring of all, and a server for each guest.
type Owner struct {
	// Whole is the ring with the slots of all ranks, for the plugins.
	Whole *ring.Ring

	guests  []*server
	failed  func(error) // Config.Failed
	damages damages
	pools   []supervise.Processes // nil before Serve
}

// receive makes the ring, and lets the guests of the machine in.
func (c *Config) receive(ctx context.Context, d *door, p plan) (*Feed, error) {
	whole, err := c.Create(p.total, p.slotSize)
	if err != nil {
		return nil, fmt.Errorf("for the %d ranks of this machine: %w", c.Machine.Size, err)
	}
	own := c.Meeting.World().Rank
	expected := map[int]bool{}
	for rank := range p.first {
		if rank != own {
			expected[rank] = true
		}
	}
	knockers, err := d.admit(ctx, c, expected, whole.File())
	if err != nil {
		return nil, errors.Join(err, whole.Close())
	}
	o := &Owner{Whole: whole, failed: c.Failed}
	for _, k := range knockers {
		o.guests = append(o.guests, newServer(o, k, p.first[k.rank], p.slots[k.rank]))
	}
	return &Feed{Ring: whole.Part(p.first[own], p.slots[own]), Owner: o}, nil
}

// Serve lets the guests send batches to processes, by plugin, whose ring is Whole. It returns the same for the batches
// of the owner. The processes must stay until Feed.Stop has returned.
func (o *Owner) Serve(pools []supervise.Processes) []supervise.Processes {
	o.pools = pools
	var own []supervise.Processes
	workers := make([]int, len(pools))
	for i, p := range pools {
		own, workers[i] = append(own, &shared{p, o, nil}), p.Workers()
	}
	for _, g := range o.guests {
		g.start(workers)
	}
	return own
}

// stop ends the connections with the guests, and returns when no call of them is left.
func (o *Owner) stop() {
	for _, g := range o.guests {
		g.stop()
	}
}

func (o *Owner) close() error {
	o.stop()
	return o.Whole.Close()
}

// damaged tells all ranks but one, which has found it, that the memory was damaged; from is nil for the owner.
func (o *Owner) damaged(from *server) {
	if from != nil {
		o.damages.happen()
	}
	for _, g := range o.guests {
		if g != from {
			g.tell()
		}
	}
}

// shared is the processes of a plugin for one of the ranks: who ends all of them has found the memory damaged, of which
// the other ranks are told.
type shared struct {
	supervise.Processes
	owner *Owner
	from  *server // nil: the owner
}

// KickAll implements supervise.Processes.
func (s *shared) KickAll(reason string) {
	s.Processes.KickAll(reason)
	s.owner.damaged(s.from)
}

// errRequest ends the connection with a guest that has sent what none sends.
var errRequest = errors.New("a request that no rank sends")

// pool returns the processes of a plugin that a guest names.
func (s *server) pool(q *request) (supervise.Processes, error) {
	if q.Plugin < 0 || q.Plugin >= len(s.owner.pools) {
		return nil, fmt.Errorf("%w: for plugin %d of %d", errRequest, q.Plugin, len(s.owner.pools))
	}
	return &shared{s.owner.pools[q.Plugin], s.owner, s}, nil
}
