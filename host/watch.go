package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/watch"
)

// openWatch takes note of the GPUs before anything of the run is on them. A run on the CPU has nothing to watch.
func (j *job) openWatch(open func() (gpu.Inventory, error), say func(*event.Memory)) error {
	if !j.onGPU() {
		return nil
	}
	inventory, err := open()
	if err != nil {
		return err
	}
	roles := []watch.Role{{Name: "Model", Place: j.placement.Model, Baseline: int64(j.cfg.MemoryBaseline), Processes: j.training}}
	if !j.placement.Data.OnCPU() {
		roles = append([]watch.Role{{Name: "Data", Place: j.placement.Data, Processes: j.plugged}}, roles...)
	}
	j.watch, err = watch.New(watch.Config{Inventory: inventory, Roles: roles, Log: j.log, Say: say})
	return err
}

// watchSink counts steps for the watch. It is required: the watch finds growing memory by their number.
type watchSink struct {
	watch *watch.Watch
	due   func(step int64) bool
}

// Take implements event.Sink.
func (s watchSink) Take(events []event.Event) error {
	for _, e := range events {
		if step, ok := e.(*event.Step); ok {
			s.watch.Window(step.Step, s.due(step.Step))
		}
	}
	return nil
}

// Close implements event.Sink.
func (watchSink) Close() error { return nil }

// training lists the one process that trains.
func (j *job) training() []watch.Process {
	relieve := func(reason string) { j.grown.Store(&reason) }
	return []watch.Process{{Name: "training", PID: os.Getpid(), Share: j.placement.Model.Limit, Relieve: relieve}}
}

// plugged lists the processes that see the data GPU.
func (j *job) plugged() []watch.Process {
	var all []watch.Process
	for i, pool := range j.pools {
		if !j.pipeline.UsesGPU(i) {
			continue
		}
		for _, p := range pool.Running() {
			name := "plugin " + j.pipeline.Plugins[i].Name()
			if pool.Workers() > 1 {
				name += fmt.Sprintf(", worker %d", p.Worker)
			}
			all = append(all, watch.Process{Name: name, PID: p.PID, Share: j.shares[i], Relieve: func(reason string) {
				pool.Recycle(p.ProcessID, reason, memoryHint)
			}})
		}
	}
	return all
}

const memoryHint = "give all plugins more with --data-gpu-memory, or each process a larger share with fewer of them (--plugin-workers)"

// relieve shrinks the arenas of the sessions when the watch has found that training uses too much. It comes between two windows.
func (r *run) relieve() error {
	reason := r.grown.Swap(nil)
	if reason == nil {
		return nil
	}
	if err := r.sizeArenas(); err != nil { // what they had is their peak
		return err
	}
	err := errors.Join(r.model.Shrink(), r.optimizer.Shrink())
	if errors.Is(err, train.ErrCaptured) {
		r.log.Warn(fmt.Sprintf("training uses much memory: %s; its arenas cannot shrink: %v (--cuda-graphs off lets them)", *reason, train.ErrCaptured))
		return nil
	}
	if err == nil {
		r.log.Warn(fmt.Sprintf("training gives back what its arenas do not need: %s", *reason))
	}
	return err
}

// sizeArenas keeps the most that ONNX Runtime's arenas have held.
func (r *run) sizeArenas() error {
	model, err := r.model.ArenaBytes()
	if err != nil {
		return err
	}
	optimizer, err := r.optimizer.ArenaBytes()
	r.arenas = max(r.arenas, model+optimizer)
	return err
}

// usage says how the devices were used in a run of that wall time: the CPU, and the GPUs by role. On a GPU the host's process has the
// data's role on the CPU: it decodes.
func (r *run) usage(wall time.Duration) ([]report.Memory, []report.Utilization, error) {
	role := "model"
	if r.onGPU() {
		role = "data"
	}
	process, busy, err := report.CPU(role, wall)
	if err == nil {
		err = r.sizeArenas()
	}
	if err != nil {
		return nil, nil, err
	}
	weights, grads, slots := r.model.Bytes()
	arenas := int64(weights + grads + slots + r.optimizer.Bytes() + r.arenas)
	if !r.onGPU() {
		process.ArenaPeakBytes = arenas
	}
	memory, utilization := []report.Memory{process}, []report.Utilization{busy}
	for _, f := range r.watch.Figures() {
		name, role := f.Place.GPU.String(), strings.ToLower(f.Role)
		m := report.Memory{Device: name, Role: role, LimitBytes: f.Place.Limit, ProcessPeakBytes: f.Peak}
		if role == "model" {
			m.ArenaPeakBytes = arenas
		}
		memory = append(memory, m)
		utilization = append(utilization, report.Utilization{Device: name, Role: role, Mean: f.Busy, Std: f.BusyStd, Samples: f.Samples})
	}
	return memory, utilization, nil
}
