package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// device is the GPU that the model is on. A run on the CPU has none.
type device struct {
	train.Device
	ring gpu.Registration
	plan memoryPlan
	// graphs says whether to capture CUDA graphs, and fault why not although the person let the host choose.
	graphs bool
	fault  error
}

// fakeDriver reports that this is a test whose libcuda keeps a GPU's memory on the host: there the CPU computes on it.
func fakeDriver() bool { return os.Getenv("XTTS_HOST_TEST_FAKE_DRIVER") != "" }

// onGPU reports whether the model is on a GPU.
func (j *job) onGPU() bool { return !j.placement.Model.OnCPU() }

// openDevice makes the context and the streams of the model GPU, and pins the ring, so that batches cross at full speed. It leaves
// the calling thread bound to the GPU, and so locked to the goroutine.
func (j *job) openDevice() (err error) {
	if !j.onGPU() {
		return nil
	}
	runtime.LockOSThread()
	d := &j.device
	d.plan = j.newMemoryPlan()
	room, err := d.plan.room()
	if err != nil {
		return err
	}
	if d.Context, err = cuda.Open(j.placement.Model.GPU.UUID); err != nil {
		return err
	}
	if err = d.Context.Bind(); err != nil {
		return err
	}
	if d.Compute, err = d.Context.NewStream(); err != nil {
		return err
	}
	if d.Transfer, err = d.Context.NewStream(); err != nil {
		return err
	}
	if d.Timer, err = train.NewTimer(d.Device); err != nil {
		return err
	}
	if d.ring, err = d.Context.Register(j.ring.Bytes()); err != nil {
		return fmt.Errorf("pin the ring: %w", err)
	}
	if !fakeDriver() {
		d.CUDA = &ort.CUDA{Device: ort.Place(d.Context.Device().Index), Stream: d.Compute.Pointer(), TF32: j.cfg.Precision != "f32", MemoryLimit: room}
	}
	d.Deterministic = j.cfg.Deterministic
	d.graphs, d.fault, err = j.wantGraphs()
	return err
}

// wantGraphs decides on CUDA graphs by what the training graph is made of.
func (j *job) wantGraphs() (want bool, fault, err error) {
	if j.cfg.CUDAGraphs == "off" {
		return false, nil, nil
	}
	g, _ := j.bundle.Manifest.Graph("train", "f32")
	model, err := ortgraphs.ReadModel(j.bundle.Path(g.File))
	if err != nil {
		return false, nil, err
	}
	for _, f := range lint.Check(model, lint.Trials(j.bundle.Manifest)) {
		if f.Rule != lint.CUDAGraph && f.Rule != lint.Memcpy && f.Rule != lint.CPUNode {
			continue
		}
		fault = hint.Errorf("xtts-host graph lint "+j.cfg.Graph+" lists all", "%s: %s", g.File, f)
		if j.cfg.CUDAGraphs == "on" {
			return false, nil, fmt.Errorf("--cuda-graphs on: %w", fault)
		}
		return false, fault, nil
	}
	return true, nil, nil
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
	d := &j.device
	if err := d.Context.Bind(); err != nil {
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
		d.fault = p.Fault
	}
	switch {
	case p.Graphs > 0 && d.fault != nil:
		return fmt.Sprintf("%d; the optimizer runs kernel by kernel: %v", p.Graphs, d.fault), nil
	case p.Graphs > 0:
		return fmt.Sprintf("%d, and %d of the optimizer, captured and compared with runs kernel by kernel, arena %.2f GiB, %.2f s",
			p.Graphs, updates.Graphs, gib(p.ArenaBytes), p.Time.Seconds()), nil
	case d.fault != nil:
		return fmt.Sprintf("off: %v", d.fault), nil
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
	return p, updates, j.device.plan.check(p.ArenaBytes)
}

// full adds to an error about memory that the GPU has not how much it has.
func (d *device) full(err error) error {
	if !errors.Is(err, gpu.ErrOutOfMemory) {
		return err
	}
	free, total, asked := d.Context.MemInfo()
	if asked != nil {
		return err
	}
	return fmt.Errorf("%w: %d of its %d MB are free", err, free/gpu.MB, total/gpu.MB)
}

func gib(bytes int) float64 { return float64(bytes) / (1 << 30) }

// enter binds the calling thread to the GPU until the function that it returns is called.
func (d *device) enter() func() {
	if d.Context == nil {
		return func() {}
	}
	runtime.LockOSThread()
	d.Context.Bind() // what fails here fails again, and is told, at the first use
	return runtime.UnlockOSThread
}

// close gives the GPU back. What was made on it is closed before. It is safe where openDevice failed, or never was.
func (d *device) close() error {
	if d.Context == nil {
		return nil
	}
	var errs []error
	if d.ring != nil {
		errs = append(errs, d.ring.Close())
	}
	if d.Timer != nil {
		errs = append(errs, d.Timer.Close())
	}
	for _, s := range []gpu.Stream{d.Compute, d.Transfer} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	errs = append(errs, d.Context.Close())
	*d = device{}
	return errors.Join(errs...)
}
