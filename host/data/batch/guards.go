package batch

import (
	"fmt"
	"strings"
	"sync"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// guards protects the memory that all plugins can write to. Every process maps the whole ring, so a process that writes
// outside its tensors may damage any batch. Therefore the first damage that is found ends the process that caused it,
// and then all batches in flight are rebuilt.
type guards struct {
	ring    *ring.Ring
	layouts []ring.Layout
	pools   []supervise.Processes // all pools that map the ring
	names   []string              // of their plugins
	fed     bool                  // other ranks have batches in the same memory and at the same processes

	repair sync.Mutex // held by the goroutine that handles a damage, while processes end

	mu         sync.Mutex  // guards the rest, and the guards in memory
	bucket     []int       // by slot: the bucket whose guards are in it, -1 before the first
	begun      []int       // by slot: the generation in which its batch was started
	generation int         // number of damages so far: a batch of an earlier generation may be damaged
	calls      []stageCall // by slot
}

// stageCall is the time of a slot at a stage, from the check of its guards before the call to the check after it.
type stageCall struct {
	pool   supervise.Processes // nil between calls
	shared bool                // another process may have had a batch at the same time
}

func newGuards(r *ring.Ring, layouts []ring.Layout) *guards {
	g := &guards{ring: r, layouts: layouts, bucket: make([]int,
		r.Slots()), begun: make([]int, r.Slots()), calls: make([]stageCall,
		r.Slots())}
	for i := range g.bucket {
		g.bucket[i] = -1
	}
	return g
}

// begin sets the guards of a slot for a new batch, or for a new attempt at one.
func (g *guards) begin(b *pipeline.Batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.layouts[b.Bucket].WriteGuards(g.ring.Slot(b.Slot))
	g.bucket[b.Slot], g.begun[b.Slot] = b.Bucket, g.generation
}

// vacate forgets what a slot held, which is not used any more.
func (g *guards) vacate(slot int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bucket[slot] = -1
}

// enter begins the call of a stage with a slot, leave ends it.
func (g *guards) enter(slot int, pool supervise.Processes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := &g.calls[slot]
	*v = stageCall{pool: pool, shared: g.fed} // the calls of other ranks are not known here
	for i := range g.calls {
		// The process of a call is known only after the call, so two calls count as calls of different processes.
		if o := &g.calls[i]; i != slot && o.pool != nil && (o.pool != pool || pool.Workers() > 1) {
			v.shared, o.shared = true, true
		}
	}
}

// leave ends the call of a stage. lost says that the process was lost: then another batch at its plugin may have been
// with that process or with its replacement.
func (g *guards) leave(slot int, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pool := g.calls[slot].pool
	g.calls[slot] = stageCall{}
	for i := range g.calls {
		if o := &g.calls[i]; lost && o.pool == pool {
			o.shared = true
		}
	}
}

// worker is the process that has just returned a batch; the call has not been ended with leave yet.
type worker struct {
	pool    supervise.Processes
	process supervise.ProcessID
	stage   string // the instance's name
	culprit bool   // set by check: this process caused the damage
}

// check returns an error that wraps pipeline.ErrRebuild if a process wrote to memory of the batch that it must not
// write to. by is the process that worked on it just now, nil if none did. The process that caused the damage has ended
// when check returns.
func (g *guards) check(b *pipeline.Batch, by *worker) error {
	if g.sound(b) {
		return nil
	}
	g.repair.Lock() // the same damage is found in many slots
	defer g.repair.Unlock()
	g.mu.Lock()
	old, alone := g.begun[b.Slot] != g.generation, !g.calls[b.Slot].shared
	damaged, first := g.damaged()
	g.mu.Unlock()
	if old {
		return fmt.Errorf("%w: ring slot %d was filled before the ring was damaged", pipeline.ErrRebuild, b.Slot)
	}
	if by != nil && !alone {
		by = nil
	}
	reason := g.killCulprit(damaged, first, by)
	g.mu.Lock()
	g.generation++ // no process writes any more to batches of an earlier generation
	g.mu.Unlock()
	return fmt.Errorf("%w: %s", pipeline.ErrRebuild, reason)
}

// changed ends all processes because one of them, no one knows which, has written to a tensor that was finished.
func (g *guards) changed(b *pipeline.Batch, why error) error {
	g.repair.Lock()
	defer g.repair.Unlock()
	g.mu.Lock()
	old := g.begun[b.Slot] != g.generation
	g.mu.Unlock()
	if old {
		return fmt.Errorf("%w: ring slot %d was filled before the ring was damaged", pipeline.ErrRebuild, b.Slot)
	}
	reason := g.killAll(why.Error())
	g.mu.Lock()
	g.generation++
	g.mu.Unlock()
	return fmt.Errorf("%w: %s", pipeline.ErrRebuild, reason)
}

// outdate has all batches in flight rebuilt, because another rank has found a damage, and has ended the processes.
func (g *guards) outdate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generation++
}

func (g *guards) sound(b *pipeline.Batch) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun[b.Slot] == g.generation && g.layouts[b.Bucket].CheckGuards(g.ring.Slot(b.Slot)) == nil
}

// damaged counts the slots with a damaged guard, and returns the first damage. The caller holds mu.
func (g *guards) damaged() (n int, first error) {
	for slot, bucket := range g.bucket {
		if bucket < 0 {
			continue
		}
		if err := g.layouts[bucket].CheckGuards(g.ring.Slot(slot)); err != nil {
			if n++; first == nil {
				first = err
			}
		}
	}
	return n, first
}

// killCulprit ends the process that caused the damage. If one slot is damaged, and no other process has had a batch
// since the slot was intact, it is by, the process that has just returned the batch. Otherwise by is nil, the culprit
// is unknown, and all processes are ended.
func (g *guards) killCulprit(damaged int, first error, by *worker) (reason string) {
	if by != nil && damaged == 1 {
		by.culprit = true
		reason = fmt.Sprintf("stage %s: %v", by.stage, first)
		by.pool.Kick(by.process, reason)
		return reason
	}
	slots := "a ring slot was damaged"
	if damaged > 1 {
		slots = fmt.Sprintf("%d ring slots were damaged", damaged)
	}
	return g.killAll(fmt.Sprintf("%s: %v", slots, first))
}

// killAll ends all processes for a reason, and returns it with the plugins that it may be about.
func (g *guards) killAll(reason string) string {
	if len(g.names) > 1 {
		reason += "; it was one of the plugins " + strings.Join(g.names, ", ")
	}
	var all sync.WaitGroup
	for _, p := range g.pools {
		all.Go(func() { p.KickAll(reason) })
	}
	all.Wait()
	return reason
}
