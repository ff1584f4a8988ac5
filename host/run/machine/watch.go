package machine

import (
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/watch"
)

// openWatch starts the watch. A run on the CPU has none.
func (m *Machine) openWatch(open func() (gpu.Inventory, error), say func(*event.Memory)) error {
	if !m.plan.OnGPU() {
		return nil
	}
	inventory, err := open()
	if err != nil {
		return err
	}
	roles := []watch.Role{{
		Name: watch.Model, Place: m.plan.Placement.Model, Baseline: int64(m.plan.Config.MemoryBaseline),
		Processes: m.Training,
	}}
	if !m.plan.Placement.Data.OnCPU() && !m.plan.Guest() {
		roles = append([]watch.Role{{Name: watch.Data, Place: m.plan.Placement.Data, Processes: m.plugged}}, roles...)
	}
	m.Watch, err = watch.New(watch.Config{Inventory: inventory, Roles: roles, Log: m.log, Say: say})
	return err
}

// Training returns the one process that trains.
func (m *Machine) Training() []watch.Process {
	relieve := func(reason string) { m.grown.Store(&reason) }
	return []watch.Process{{Name: "training", PID: os.Getpid(), Share: m.plan.Placement.Model.Limit, Relieve: relieve}}
}

// plugged returns the processes that see the data GPU.
func (m *Machine) plugged() []watch.Process {
	var all []watch.Process
	for i, pool := range m.own {
		if !m.plan.Stages.Resolved.UsesGPU(i) {
			continue
		}
		for _, p := range pool.Running() {
			name := "plugin " + m.plan.Stages.Resolved.Plugins[i].Name()
			if pool.Workers() > 1 {
				name += fmt.Sprintf(", worker %d", p.Worker)
			}
			all = append(all,
				watch.Process{Name: name, PID: p.PID, Share: m.plan.Stages.Shares[i], Relieve: func(reason string) {
					pool.Recycle(p.ProcessID, reason, memoryHint)
				}})
		}
	}
	return all
}

const memoryHint = "give all plugins more with --data-gpu-memory, or each process a larger share with fewer of them " +
	"(--plugin-workers)"

// Grown returns, once, why training must release memory, or "".
func (m *Machine) Grown() string {
	if reason := m.grown.Swap(nil); reason != nil {
		return *reason
	}
	return ""
}
