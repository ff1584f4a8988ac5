// Package machine owns the ring, the plugin processes and the GPU monitor of a run. Of several ranks on a machine, the
// first owns ring and processes for all.
package machine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/watch"
	"github.com/xtts-host/xtts-host/host/ranks/feed"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Config has the parts that a Machine needs.
type Config struct {
	Plan      *plan.Plan
	Log       *slog.Logger
	Debug     *debug.Folder                 // may be nil
	Inventory func() (gpu.Inventory, error) // is called only on a GPU
	Memory    func(*event.Memory)           // receives the measurements of the watch
	Say       func(line string)             // shows a line of --debug; may be nil without it
	MinSlots  int                           // of the ring, if more are needed than the plan has
	Cache     *featurecache.Config          // of the feature cache; nil without one
	// Feed opens what the ranks of the machine share. It is nil, or returns nil, if this rank has a ring and plugins of
	// its own.
	Feed func(context.Context, feed.Need) (*feed.Feed, error)
}

// Machine owns the ring, the plugin processes and the GPU monitor. It is complete after Open and, in a run with
// plugins, StartPlugins.
type Machine struct {
	Ring     *ring.Ring            // the slots of this rank
	Pools    []supervise.Processes // by plugin of the plan
	Watch    *watch.Watch          // nil on the CPU
	Features *batch.Features       // nil without a feature cache

	feed  *feed.Feed        // nil if no other rank uses ring and plugins
	own   []*supervise.Pool // by plugin of the plan; none of a guest
	cache *featurecache.Cache

	plan  *plan.Plan
	log   *slog.Logger
	debug *debug.Folder
	say   func(line string)
	grown atomic.Pointer[string] // why training must release memory; nil: it need not
}

// Open records the memory use of the GPUs before the run uses them, and creates the ring, or opens that of the ranks of
// the machine. After an error nothing is open. ctx bounds the wait for other ranks.
func Open(ctx context.Context, c Config) (_ *Machine, err error) {
	m := &Machine{plan: c.Plan, log: c.Log, debug: c.Debug, say: c.Say}
	if err := m.openWatch(c.Inventory, c.Memory); err != nil {
		return nil, err
	}
	if err := m.openFeatures(c.Cache); err != nil {
		m.cache.Close()
		return nil, errors.Join(err, m.Watch.Close())
	}
	if err := m.openRing(ctx, c); err != nil {
		m.cache.Close()
		return nil, errors.Join(err, m.Watch.Close())
	}
	return m, nil
}

// openRing creates the ring, or takes the slots of this rank of that of all ranks of the machine.
func (m *Machine) openRing(ctx context.Context, c Config) (err error) {
	slots, size := max(c.MinSlots, c.Plan.Config.BufferSize), c.Plan.Slots.Size()
	if c.Feed != nil {
		if m.feed, err = c.Feed(ctx, feed.Need{Slots: slots, SlotSize: size, Create: createRing}); err != nil {
			return err
		}
	}
	if m.feed != nil {
		m.Ring = m.feed.Ring
		return nil
	}
	reserved := slots
	if a := c.Plan.Adaptive; a != nil && a.Returns {
		reserved = max(c.MinSlots, a.Slots)
	}
	m.Ring, err = createPart(slots, size, reserved)
	return err
}

// createRing is ring.Create with a hint.
func createRing(slots, size int) (*ring.Ring, error) { return createPart(slots, size, slots) }

// createPart is ring.CreatePart with a hint.
func createPart(slots, size, reserved int) (*ring.Ring, error) {
	r, err := ring.CreatePart(slots, size, reserved)
	if err == nil {
		return r, nil
	}
	advice := "give a smaller --buffer-size"
	if errors.Is(err, syscall.EFBIG) {
		advice = "raise the limit of file sizes (ulimit -f), which counts for the ring, too, or " + advice
	}
	return nil, hint.Errorf(advice, "%w", err)
}

// OnDamage sets what is called when another rank has found the ring damaged.
func (m *Machine) OnDamage(call func()) {
	if m.feed != nil {
		m.feed.OnDamage(call)
	}
}

// drainTimeout limits the wait for the end of the plugins, without --debug.
const drainTimeout = 15 * time.Second

// Close ends the plugins and releases the resources of Open and StartPlugins. Call it when nothing uses the ring any
// more. A plugin that does not end in time is killed, and the run prints a warning. Close is idempotent.
func (m *Machine) Close() error {
	ctx := context.Background()
	if !m.plan.Config.Debug {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, drainTimeout)
		defer cancel()
	}
	m.feed.Stop()
	var drain errgroup.Group // each has the full time: one that hangs does not reduce the time of the others
	for _, p := range m.own {
		if p != nil {
			drain.Go(func() error {
				if err := p.Drain(ctx); err != nil {
					m.log.Warn(err.Error())
				}
				return p.Close()
			})
		}
	}
	errs := []error{drain.Wait(), m.Watch.Close()}
	m.cache.Close()
	if m.Ring != nil {
		errs = append(errs, m.Ring.Close())
	}
	errs = append(errs, m.feed.Close())
	m.Pools, m.own, m.Ring, m.feed = nil, nil, nil, nil
	return errors.Join(errs...)
}
