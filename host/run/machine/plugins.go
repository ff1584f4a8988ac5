package machine

import (
	"cmp"
	"context"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Complete writes that a run has nothing left to do. Its host may have been killed as the last thing of the run, so it
// removes what such a host leaves: no plugin is started that would do so.
func Complete(out io.Writer, text string) {
	supervise.Sweep()
	io.WriteString(out, text)
}

// StartPlugins starts the processes of all plugins at the same time, for all ranks that share them. A guest waits until
// they have been started. ctx bounds the start only.
func (m *Machine) StartPlugins(ctx context.Context) (err error) {
	if m.plan.Guest() {
		m.Pools, err = m.feed.Guest.Plugins(ctx)
		return err
	}
	if err := m.startOwn(ctx); err != nil {
		return err
	}
	for _, p := range m.own {
		m.Pools = append(m.Pools, p)
	}
	if m.feed != nil {
		m.Pools = m.feed.Owner.Serve(m.Pools)
	}
	return nil
}

// startOwn starts the processes of this rank.
func (m *Machine) startOwn(ctx context.Context) error {
	requests := make([]*stagepb.ConfigureRequest, len(m.plan.Stages.Resolved.Plugins))
	library, err := ort.Find(m.plan.ORT())
	if err != nil {
		return err
	}
	for i := range requests {
		if requests[i], err = batch.ConfigureRequest(
			m.plan.Bundle, m.plan.Stages.Resolved, i, m.plan.Slots.Layouts,
		); err != nil {
			return err
		}
		m.giveGPU(requests[i], i)
	}
	m.own = make([]*supervise.Pool, len(m.plan.Stages.Resolved.Plugins))
	g, ctx := errgroup.WithContext(ctx)
	for i, entry := range m.plan.Stages.Resolved.Plugins {
		g.Go(func() (err error) {
			m.own[i], err = supervise.NewPool(ctx, m.poolConfig(entry, requests[i], library))
			return err
		})
	}
	return g.Wait()
}

// giveGPU lets a plugin see the data GPU if one of its stages can use it.
func (m *Machine) giveGPU(r *stagepb.ConfigureRequest, plugin int) {
	if data := m.plan.Placement.Data; !data.OnCPU() && m.plan.Stages.Resolved.UsesGPU(plugin) {
		r.DeviceUuid, r.MemoryLimit = data.GPU.UUID, uint64(m.plan.Stages.Shares[plugin])
	}
}

// onGPUInFlight is the number of concurrent batches of a process that computes on a GPU: one batch is transferred while
// another is computed.
const onGPUInFlight = 4

// poolConfig applies the configured limits. --plugin-timeout is the deadline of a batch, and an upper bound of shorter
// deadlines.
func (m *Machine) poolConfig(
	plugin catalog.Entry, configure *stagepb.ConfigureRequest, library string,
) supervise.Config {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	start, call := seconds(m.plan.Config.PluginStartTimeout), seconds(m.plan.Config.PluginTimeout)
	inFlight := 0
	if configure.DeviceUuid != "" {
		plugin, inFlight = plugin.OnGPU(), onGPUInFlight
	}
	c := supervise.Config{
		InFlight: inFlight,
		Plugin:   plugin, ORTLibrary: library, Workers: m.plan.Config.PluginWorkers[plugin.Name()], Ring: m.whole(),
		Configure: configure, Logger: m.log, StartTimeout: start, ConfigureTimeout: start, CallTimeout: call,
		Pause: m.plan.Config.VerifyPlugins, Sandbox: sandbox.Mode(m.plan.Config.Sandbox),
		MemoryLimit: int64(cmp.Or(int(m.plan.Config.PluginMemory), plugin.Manifest.MemoryMB<<20)),
	}
	if call > 0 {
		c.DrainTimeout, c.HealthTimeout = min(call, 10*time.Second), min(call, 5*time.Second)
	}
	if m.plan.Config.Debug {
		c.Debug = m.say
	}
	if m.debug != nil {
		c.Reached = func(phase supervise.Phase, p supervise.ProcessID, pid int) {
			m.debug.Reach(debug.Point{
				Phase: string(phase), Plugin: plugin.Name(), PID: pid, Worker: p.Worker, Generation: p.Generation,
			})
		}
	}
	return c
}

// whole is the ring with the slots of all ranks whose batches the plugins get.
func (m *Machine) whole() *ring.Ring {
	if m.feed != nil {
		return m.feed.Owner.Whole
	}
	return m.Ring
}

// Report describes the work of the plugins that this rank has started, for all ranks that share them.
func (m *Machine) Report() (list []report.Plugin) {
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for i, pool := range m.own {
		s, id := pool.Stats(), m.plan.Stages.Resolved.Plugins[i].Name()
		var growth *float64
		if s.Growth != nil {
			mb := *s.Growth * 1000 / 1e6
			growth = &mb
		}
		list = append(list, report.Plugin{
			ID: id, Workers: pool.Workers(), Ranks: m.plan.Fed(), Restarts: int(s.Restarts), Calls: int64(s.Calls),
			Failed: int64(s.Failed), Lost: int64(s.Lost), PeakMemoryBytes: s.PeakMemory, GrowthMB: growth,
			P50Ms: milliseconds(s.P50), P99Ms: milliseconds(s.P99), CPUS: s.CPU.Seconds(),
		})
	}
	return list
}

// Up returns the numbers of processes that are up, in the order of Report.
func (m *Machine) Up() (list []int) {
	for _, p := range m.own {
		list = append(list, len(p.Running()))
	}
	return list
}
