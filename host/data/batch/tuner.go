package batch

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/adapt"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Adaptive has what a Path changes during a run: the number of ring slots, of decoders and of processes of plugins.
// Depths has the largest numbers of slots and decoders.
type Adaptive struct {
	Slots    int // in the beginning, and at least
	Decoders int // in the beginning
	Workers  int // decoders and processes together, at most
	// Returns has slots that are not used take no memory. The first Slots of the ring are reserved.
	Returns bool
	// Fixed says by plugin that the number of its processes cannot change.
	Fixed []bool
	// Changed gets every change, on the trainer's goroutine.
	Changed func(*event.Adapted)
}

// tuner changes what an Adaptive says, by what the pipeline measures.
type tuner struct {
	Adaptive
	ring   *ring.Ring
	guards *guards
	pools  []supervise.Processes
	log    *slog.Logger

	mu   sync.Mutex
	room int // guarded by mu: slots that there is memory for, as far as is known

	depth   adapt.Depth
	balance adapt.Balance
	groups  []adapt.Group // decoders, then plugins; Workers are those that are wanted
	phases  []int         // by phase of the pipeline: its group, -1 for none
	moving  bool          // the groups do not have the wanted workers yet
	spent   time.Duration // of all cores, by this process and the plugins, until the last decision
	decided time.Time     // when that was
}

// resizable is implemented by the pools of this process. Workers of such a pool counts the processes that are being
// started or ended, too, Running those that accept calls.
type resizable interface {
	Resize(n int)
	Running() []supervise.Running
	Stats() supervise.Stats
}

func newTuner(c *Config, g *guards) *tuner {
	t := &tuner{
		Adaptive: *c.Adaptive, ring: c.Ring, guards: g, pools: c.Pools, log: c.Log, room: c.Depths.Ring,
		depth:   adapt.Depth{Now: c.Adaptive.Slots, Min: c.Adaptive.Slots, Max: c.Depths.Ring},
		balance: adapt.Balance{Total: c.Adaptive.Workers},
		groups:  []adapt.Group{{Name: event.Decoders, Workers: c.Adaptive.Decoders, Most: c.Depths.Workers}},
		phases:  []int{0},
	}
	for i, pool := range c.Pools {
		_, can := pool.(resizable)
		t.groups = append(t.groups, adapt.Group{
			Name: c.Stages.Plugins[i].Name(), Workers: pool.Workers(),
			Most: max(pool.Workers(), runtime.GOMAXPROCS(0)), Fixed: !can || t.Fixed[i],
		})
	}
	for _, in := range c.Stages.Instances {
		t.phases = append(t.phases, 1+in.Plugin)
	}
	t.phases = append(t.phases, -1) // the transfer
	return t
}

// adapt returns the part of the pipeline's configuration.
func (t *tuner) adapt() *pipeline.Adapt {
	a := &pipeline.Adapt{Slots: t.Slots, Workers: t.Decoders, Decide: t.decide}
	if t.Returns {
		a.Open, a.Shut = t.open, t.shut
	}
	return a
}

// open reserves the memory of a slot. It returns false if there is none.
func (t *tuner) open(slot int) bool {
	if slot < t.Slots {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot >= t.room {
		return false
	}
	err := t.ring.Reserve(slot)
	if err != nil {
		t.log.Warn(fmt.Sprintf("--adaptive: at most %s ahead: %v", units.Count(slot, "batch"), err))
		t.room = slot
	}
	return err == nil
}

// limit is the largest depth that there is memory for.
func (t *tuner) limit() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.room
}

// shut gives the memory of a slot back.
func (t *tuner) shut(slot int) {
	t.guards.vacate(slot)
	if err := t.ring.Release(slot); err != nil {
		t.log.Info("memory of the ring is not given back", "slot", slot, "error", err)
	}
}

// decide implements pipeline.Adapt.
func (t *tuner) decide(p *pipeline.Pipeline, b *pipeline.Batch, m adapt.Measured, phases []pipeline.Phase) {
	say := func(what string, from, to int, why string) {
		t.Changed(&event.Adapted{Step: b.Step + 1, What: what, From: from, To: to, Why: why})
	}
	from, d := t.depth.Now, &t.depth
	d.Max = t.limit()
	d.Now = min(d.Now, d.Max)
	if why := d.Next(m); d.Now != from {
		if why == "" {
			why = "there is no memory for more"
		}
		say(event.Depth, from, d.Now, why)
	}
	m.Cores = t.cores()
	if t.settled(p) && d.Now == from { // a larger depth may be enough
		if move := t.balance.Next(t.loaded(phases), m); move != nil {
			t.move(move, say)
		}
	}
	p.Resize(d.Now, t.groups[0].Workers)
}

// cores returns the share of the time of all cores that this process and the plugins took since the last call. It is 0
// the first time, and if a process has ended meanwhile.
func (t *tuner) cores() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	now, spent := time.Now(), time.Duration(u.Utime.Nano()+u.Stime.Nano())
	for _, pool := range t.pools {
		if own, ok := pool.(resizable); ok {
			spent += own.Stats().CPU
		}
	}
	took, since := spent-t.spent, t.decided
	t.spent, t.decided = spent, now
	if since.IsZero() || took <= 0 {
		return 0
	}
	return took.Seconds() / (now.Sub(since).Seconds() * float64(runtime.GOMAXPROCS(0)))
}

// settled reports whether the groups have the wanted workers, and the times are of these alone. A plugin may take
// minutes to start, and nothing is decided before its processes accept calls.
func (t *tuner) settled(p *pipeline.Pipeline) bool {
	if !t.moving {
		return true
	}
	for i, pool := range t.pools {
		g := &t.groups[1+i]
		switch n := pool.Workers(); {
		case n > g.Workers:
			return false // one has not ended yet
		case n < g.Workers: // one could not be started
			g.Workers, g.Fixed = n, true
			t.balance = adapt.Balance{Total: t.balance.Total}
		}
		if own, ok := pool.(resizable); ok && len(own.Running()) < g.Workers {
			return false // one has not started yet, or starts again
		}
	}
	t.moving = false
	p.Forget()
	return false
}

// loaded returns the groups with the times of their phases.
func (t *tuner) loaded(phases []pipeline.Phase) []adapt.Group {
	for i := range t.groups {
		t.groups[i].Busy, t.groups[i].Queue = 0, 0
	}
	for i, p := range phases {
		if at := t.phases[i]; at >= 0 {
			g := &t.groups[at]
			g.Busy, g.Queue = g.Busy+p.Busy.Seconds(), g.Queue+p.Queue.Seconds()
		}
	}
	return t.groups
}

// move changes the workers of two groups.
func (t *tuner) move(m *adapt.Move, say func(what string, from, to int, why string)) {
	change := func(group, by int) {
		if group < 0 {
			return
		}
		g := &t.groups[group]
		g.Workers += by
		say(g.Name, g.Workers-by, g.Workers, m.Why)
		if group > 0 {
			t.pools[group-1].(resizable).Resize(g.Workers)
		}
	}
	change(m.From, -1)
	change(m.To, 1)
	t.moving = true
}
