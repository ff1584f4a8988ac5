package feed

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/host/ranks/meet"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Config is what a rank needs to share with the others of its machine.
type Config struct {
	Meeting Meeting
	Machine world.Machine // as Find has returned it
	Secret  string        // of the ranks
	Need
	// Say, which may be nil, gets a line for a person about a connection that is refused.
	Say func(line string)
	// Failed, which may be nil, gets the error of a plugin that has failed for good in the call of a guest. The
	// owner is to end because of it.
	Failed func(error)
}

// Need is the part of a ring that a rank needs.
type Need struct {
	Slots, SlotSize int
	// Create makes the ring of all ranks, as ring.Create.
	Create func(slots, slotSize int) (*ring.Ring, error)
}

// Feed is what a rank shares with the others of its machine: as its owner, or as a guest. The other one is nil.
type Feed struct {
	Ring  *ring.Ring // the slots of this rank
	Owner *Owner
	Guest *Guest
}

// claim is what a rank tells the others.
type claim struct {
	First, Slots, SlotSize int
	Door                   string // of an owner: the path of its socket
}

// Open makes the memory that the ranks of a machine share, and connects them. All ranks of a run call it. It is nil for
// a rank that is alone on its machine.
func Open(ctx context.Context, c Config) (_ *Feed, err error) {
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	own := claim{First: c.Machine.First, Slots: c.Slots, SlotSize: paged(c.SlotSize)}
	var d *door
	if c.Machine.Owns() && !c.Machine.Alone() {
		if d, err = openDoor(); err != nil {
			return nil, err
		}
		defer d.close()
		own.Door = d.path()
	}
	plan, err := c.exchange(own)
	if err != nil || c.Machine.Alone() {
		return nil, err
	}
	if d == nil {
		return c.visit(ctx, plan)
	}
	return c.receive(ctx, d, plan)
}

// paged rounds the size of a slot, so that the slots of a rank begin with a page: it is pinned by itself.
func paged(size int) int {
	page := os.Getpagesize()
	return (size + page - 1) / page * page
}

// plan divides the ring of a machine.
type plan struct {
	door     string
	slotSize int
	first    map[int]int // by rank: its first slot
	slots    map[int]int // by rank: their number
	total    int
}

// exchange tells the other ranks what this one needs, and returns the division of the ring of its machine.
func (c *Config) exchange(own claim) (plan, error) {
	p := plan{slotSize: own.SlotSize, first: map[int]int{}, slots: map[int]int{}}
	all, err := meet.Exchange(c.Meeting, own)
	if err != nil {
		return p, err
	}
	for rank, other := range all {
		if other.First != own.First {
			continue
		}
		if other.SlotSize != own.SlotSize {
			return p, fmt.Errorf("rank %d has slots of %d bytes, rank %d of %d", rank, other.SlotSize,
				c.Meeting.World().Rank, own.SlotSize)
		}
		if rank == own.First {
			p.door = other.Door
		}
		p.first[rank], p.slots[rank] = p.total, other.Slots
		p.total += other.Slots
	}
	return p, nil
}

// lastWords is how long a rank waits for the meeting to say why another one has ended.
var lastWords = 2 * time.Second

// lost returns why the connection with another rank has ended: what the meeting knows of it, or that it has. A channel
// that is closed ends the wait for the meeting.
func (c *Config) lost(rank int, leaving <-chan struct{}) error {
	wait := time.NewTimer(lastWords)
	defer wait.Stop()
	select {
	case <-c.Meeting.Lost():
		return c.Meeting.Err()
	case <-leaving:
	case <-wait.C:
	}
	return &meet.LostError{Text: fmt.Sprintf(
		"rank %d, which shares the plugins of this machine, has closed the connection", rank)}
}

// Stop ends the connections with other ranks, and returns when no call of them is left. It is idempotent.
func (f *Feed) Stop() {
	if f != nil && f.Owner != nil {
		f.Owner.stop()
	}
}

// Close ends what is shared. It is idempotent, and a nil Feed has nothing to close.
func (f *Feed) Close() error {
	switch {
	case f == nil:
		return nil
	case f.Owner != nil:
		return f.Owner.close()
	}
	return f.Guest.close()
}

// OnDamage sets what is called when another rank has found the memory damaged, and all processes that could have done
// it have ended. Damages before do not count.
func (f *Feed) OnDamage(call func()) {
	if f.Owner != nil {
		f.Owner.damages.on(call)
		return
	}
	f.Guest.damages.on(call)
}
