package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/device"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/memory"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// onGPU reports whether the model is on a GPU.
func (j *job) onGPU() bool { return !j.placement.Model.OnCPU() }

// card is the model GPU; nil on the CPU.
func (j *job) card() *gpu.Device {
	if !j.onGPU() {
		return nil
	}
	return &j.placement.Model.GPU
}

// openDevice opens the model GPU, and decides on CUDA graphs. A run on the CPU has none.
func (j *job) openDevice() (err error) {
	if !j.onGPU() {
		return nil
	}
	j.memoryPlan = j.planMemory()
	room, err := j.memoryPlan.Room()
	if err != nil {
		return err
	}
	d, err := device.Open(device.Config{
		UUID: j.placement.Model.GPU.UUID, Ring: j.ring.Bytes(), MemoryLimit: room, TF32: j.precision.TF32, Deterministic: j.cfg.Deterministic,
	})
	if err != nil {
		return err
	}
	j.device = *d
	g, _ := j.bundle.Manifest.Graph("train", string(j.precision.Graph))
	j.capture, j.fault, err = device.Capture(j.cfg.CUDAGraphs, j.cfg.Graph, j.bundle, g.File)
	return err
}

// planMemory knows what is fixed by the bundle, and what is left for what graphs compute.
func (j *job) planMemory() memory.Plan {
	return memory.Plan{
		Limit:  int(j.placement.Model.Limit),
		Arenas: j.memory().Total() - j.memory().Copies,
		Copies: j.memory().Copies,
		Slots:  j.slots * train.SlotBytes(j.layouts),
	}
}

// prepare makes trial runs and captures on the goroutine that trains, and says how that went.
func (r *run) prepare(ctx context.Context) error {
	found, err := r.tryGraphs(ctx)
	if err == nil && r.onGPU() {
		fmt.Fprintf(r.console.Out, "cuda graphs  %s\nupdate       %s\n", found, r.updates())
		if _, fault := r.optimizer.Fused(); fault != nil {
			r.log.Warn(fmt.Sprintf("updates take longer than they could: %v; they are made by %s", fault, r.updates()))
		}
	}
	return err
}

// updates says how the optimizer updates the weights on a GPU.
func (j *job) updates() string {
	graph := "the graph of " + j.bundle.Manifest.Optimizer.Name
	if fused, _ := j.optimizer.Fused(); fused {
		return "one kernel, which gives the bits of " + graph
	}
	return graph
}

// tryGraphs makes trial runs and captures on the goroutine that trains, and returns in words what it found. On the CPU it does nothing.
// Where they do not fit, ctx ends the search for a batch that does.
func (j *job) tryGraphs(ctx context.Context) (found string, err error) {
	if !j.onGPU() {
		return "", nil
	}
	runtime.LockOSThread() // for good: captured graphs are the thread's
	if err := j.device.Context.Bind(); err != nil {
		return "", err
	}
	p, updates, err := j.prepareModel()
	if err != nil {
		return "", j.tooLarge(ctx, err, p.ArenaBytes)
	}
	if p.Fault != nil {
		if j.cfg.CUDAGraphs == "on" {
			return "", hint.Errorf("train with --cuda-graphs off", "--cuda-graphs on: %w", p.Fault)
		}
		j.fault = p.Fault
	}
	switch {
	case p.Graphs > 0 && j.fault != nil:
		return fmt.Sprintf("%d; the optimizer runs kernel by kernel: %v", p.Graphs, j.fault), nil
	case p.Graphs > 0:
		return fmt.Sprintf("%d, and %d of the optimizer, captured and compared with runs kernel by kernel, arena %.2f GiB, %.2f s",
			p.Graphs, updates.Graphs, gib(p.ArenaBytes), p.Time.Seconds()), nil
	case j.fault != nil:
		return fmt.Sprintf("off: %v", j.fault), nil
	}
	return fmt.Sprintf("off; trial runs of all buckets: arena %.2f GiB, %.2f s", gib(p.ArenaBytes), p.Time.Seconds()), nil
}

// prepareModel has model and optimizer make trial runs and capture, and checks what they take. p says it of both.
func (j *job) prepareModel() (p, updates train.Prepared, err error) {
	if p, err = j.model.Prepare(); err != nil {
		return train.Prepared{}, updates, err
	}
	if updates, err = j.optimizer.Prepare(); err != nil {
		return train.Prepared{}, updates, err
	}
	p.ArenaBytes, p.Time, p.Fault = p.ArenaBytes+updates.ArenaBytes, p.Time+updates.Time, cmp.Or(p.Fault, updates.Fault)
	return p, updates, j.memoryPlan.Check(p.ArenaBytes)
}

// tooLarge explains why what is made on the model GPU does not fit, and finds the largest batch that does: the model is closed after
// it. graphs is what graphs have taken, where all have run. Other errors are returned as they are. ctx ends the search.
func (j *job) tooLarge(ctx context.Context, err error, graphs int) error {
	if j.device.Context == nil || !exit.OutOfMemory(err) {
		return err
	}
	defer j.device.Enter()()
	if cerr := j.closeModel(); cerr != nil {
		return errors.Join(err, cerr)
	}
	plan, c := j.memoryPlan, j.cfg
	rows, sure := 0, false
	if !j.benchmarked() && !j.growsWithPlugins() {
		rows, sure = j.largestBatch(ctx)
	}
	return memory.Batch{Rows: c.BatchSize, Buffer: c.BufferSize, Accumulate: c.Accumulate}.Refuse(err, plan, graphs, rows, sure)
}

// benchmarked: a batch that does not fit is a figure there, and another size is next.
func (j *job) benchmarked() bool { return j.feeding != batch.Overlapped }

// growsWithPlugins: what plugins take of the same GPU depends on the batch, and trials have those of the batch that was refused, or none.
func (j *job) growsWithPlugins() bool { return j.placement.Shared() && j.placement.Model.Limit == 0 }

// largestBatch finds the largest batch below the one asked for that fits, by trial.
func (j *job) largestBatch(ctx context.Context) (rows int, sure bool) {
	room, _ := j.memoryPlan.Room()
	if room == 0 {
		free, _, err := j.device.Context.MemInfo()
		if err != nil {
			return 0, false
		}
		room = free
	}
	return memory.Search{
		Rows: j.cfg.BatchSize, Room: room, Bundle: j.bundle, Precision: j.precision.Graph, Log: j.log,
		Try: func(rows int) (int, error) {
			graphs, err := j.tryBatch(rows)
			return graphs, errors.Join(err, j.closeModel())
		},
	}.Largest(ctx)
}

// tryBatch makes the model for batches of so many rows, as a run does, and returns what its graphs take.
func (j *job) tryBatch(rows int) (graphs int, err error) {
	if err := j.layOut(rows); err != nil {
		return 0, err
	}
	j.memoryPlan = j.planMemory()
	room, err := j.memoryPlan.Room()
	if err != nil {
		return 0, err
	}
	j.device.LimitMemory(room)
	if err := j.openModel(); err != nil {
		return 0, err
	}
	p, _, err := j.prepareModel()
	return p.ArenaBytes, err
}

func gib(bytes int) float64 { return float64(bytes) / (1 << 30) }
