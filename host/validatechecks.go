package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/nvml"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/inspect"
	"github.com/xtts-host/xtts-host/host/memory"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/validate"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// The checks that others need.
const (
	checkBundle  = "bundle"
	checkData    = "data set"
	checkPlugins = "plugins"
	checkBuffers = "buffers"
	checkPlan    = "memory plan"
	checkStart   = "start"
	checkModel   = "model"
	checkGraphs  = "CUDA graphs"
	checkCompute = "forward and backward"
	checkServe   = "plugin processes"
	checkSteps   = "three steps"
)

// rehearsed is the number of steps that are tried.
const rehearsed = 3

// settings are the parts of a run's plan.
func (v *validation) settings() []validate.Check {
	checks := []validate.Check{
		{Name: checkBundle, Try: v.tryBundle, Remedy: "xtts-host graph inspect BUNDLE says what is in one"},
		{Name: checkData, Needs: []string{checkBundle}, Try: v.tryData, Remedy: "docs/data.md says how a data set is laid out"},
		{Name: checkPlugins, Needs: []string{checkBundle, validate.Limits}, Try: v.tryPlugins, Remedy: "xtts-host plugins list says which can be started"},
		{Name: checkBuffers, Needs: []string{checkData, checkPlugins}, Try: v.tryBuffers, Remedy: "try a smaller --batch-size, or a larger --ring-memory"},
		{Name: checkPlan, Needs: []string{checkBuffers}, Try: v.tryPlan},
	}
	if v.cfg.Resume != "" || v.cfg.Init != "" {
		checks = append(checks, validate.Check{Name: checkStart, Needs: []string{checkBuffers}, Try: v.tryStart, Remedy: "name another --resume or --init, or leave it away"})
	}
	return checks
}

func (v *validation) tryBundle(ctx context.Context) (string, error) {
	if err := v.openBundle(ctx); err != nil {
		return "", err
	}
	m, n := v.bundle.Manifest, 0
	for _, p := range m.Parameters {
		n += p.Elements()
	}
	return fmt.Sprintf("%s: %s parameters in %s, %s up to %s", m.Name, report.Thousands(n), v.precision, report.Count(len(v.buckets), "bucket"),
		inspect.Symbols(v.buckets[len(v.buckets)-1], m.Inputs)), nil
}

func (v *validation) tryData(ctx context.Context) (string, error) {
	if err := v.openData(ctx); err != nil {
		return "", err
	}
	ix := v.data.Train.Index
	text := fmt.Sprintf("%s: %s, %s, %.1f min", filepath.Join(ix.Dir, ix.List), report.Count(len(ix.Rows), "clip"), report.Count(len(ix.Speakers), "speaker"), v.data.Train.Minutes())
	if n := len(ix.Rejected); n > 0 {
		text += fmt.Sprintf("; %s cannot be used", report.Count(n, "line"))
	}
	return text, nil
}

func (v *validation) tryPlugins(ctx context.Context) (string, error) {
	if err := v.resolve(ctx); err != nil {
		return "", err
	}
	return strings.Join(v.record().Plugins(), ", "), nil
}

func (v *validation) tryBuffers(ctx context.Context) (string, error) {
	if err := v.fit(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("ring of %s of %.1f MiB, %s; training starts with %s ready",
		report.Count(v.cfg.BufferSize, "slot"), float64(v.slotSize())/(1<<20), report.Count(v.slots, "device slot"), report.Count(min(v.prefetch, v.cfg.BufferSize), "batch")), nil
}

// tryPlan counts what is known before the model is made. What its graphs compute is known by trial alone.
func (v *validation) tryPlan(context.Context) (string, error) {
	p := v.planMemory()
	copies := ""
	if p.Copies > 0 {
		copies = fmt.Sprintf("bf16 copies of the weights %s MB, ", mb(p.Copies))
	}
	text := fmt.Sprintf("weights, gradients and optimizer state %s MB, %sdevice slots %s MB", mb(p.Arenas), copies, mb(p.Slots))
	room, err := p.Room()
	switch {
	case err != nil:
		return "", err
	case room > 0:
		text += fmt.Sprintf(", CUDA %d MB; %d MB of %d are left for the graphs", memory.Libraries/gpu.MB, room/gpu.MB, p.Limit/gpu.MB)
	case v.onGPU():
		text += fmt.Sprintf(", CUDA %d MB; the GPU has %d MB", memory.Libraries/gpu.MB, v.placement.Model.GPU.Memory/gpu.MB)
	}
	return text, nil
}

func (v *validation) tryStart(ctx context.Context) (string, error) {
	if err := v.findStart(ctx); err != nil {
		return "", err
	}
	if v.resumed != nil {
		return fmt.Sprintf("%s: step %s", v.resumed.Path, report.Thousands(v.resumed.State.Step)), nil
	}
	return "weights of " + v.weights.path, nil
}

// modelChecks make the model on its device and have it compute.
func (v *validation) modelChecks() []validate.Check {
	needs := []string{validate.Runtime, checkPlan}
	if v.cfg.Resume != "" || v.cfg.Init != "" {
		needs = append(needs, checkStart)
	}
	const memory = "try a smaller --batch-size; xtts-host graph lint BUNDLE looks at the graphs"
	return append(refusing([]validate.Check{
		{Name: checkModel, Needs: needs, Try: v.tryModel, Remedy: memory},
		{Name: checkGraphs, Needs: []string{checkModel}, Try: v.tryCapture, Remedy: memory},
	}), validate.Check{Name: checkCompute, Needs: []string{checkGraphs}, Try: v.tryCompute, Remedy: memory})
}

func (v *validation) tryModel(ctx context.Context) (_ string, err error) {
	if err := v.openWatch(nvml.Open, func(*event.Memory) {}); err != nil {
		return "", err
	}
	// A transfer needs two slots, also where a run has one.
	if v.ring, err = ring.Create(max(2, v.cfg.BufferSize), v.slotSize()); err != nil {
		return "", err
	}
	if err := v.openGraphs(); err != nil {
		return "", v.tooLarge(ctx, err, 0)
	}
	weights, grads, slots := v.model.Bytes()
	return fmt.Sprintf("on %s: weights %s MB, gradients %s MB, optimizer state %s MB, device slots %s MB",
		v.modelPlace(), mb(weights), mb(grads), mb(v.optimizer.Bytes()), mb(slots)), nil
}

// mb writes a size in MB, those of small models to a hundredth.
func mb(n int) string {
	if n < 10*gpu.MB {
		return fmt.Sprintf("%.2f", float64(n)/gpu.MB)
	}
	return fmt.Sprint(n / gpu.MB)
}

// modelPlace names the device of the model in full.
func (j *job) modelPlace() string {
	if j.onGPU() {
		return j.placement.Model.GPU.String()
	}
	return "the CPU with " + report.Count(j.threads(), "thread")
}

func (v *validation) tryCapture(ctx context.Context) (string, error) {
	if !v.onGPU() {
		return "none on the CPU", nil
	}
	found, err := v.tryGraphs(ctx)
	if err != nil {
		return "", err
	}
	return found + "; an update is " + v.updates(), nil
}

// tryCompute computes gradients of a made-up batch, and changes no weight.
func (v *validation) tryCompute(context.Context) (string, error) {
	r, err := v.model.Try(len(v.buckets) - 1)
	if err != nil {
		return "", v.device.Full(err)
	}
	norm, finite, err := v.optimizer.Norm()
	if err != nil {
		return "", err
	}
	if !finite {
		return "", hint.Errorf("the bundle's training graph overflows on plain noise: compare it with PyTorch, and export it again (docs/export.md)",
			"a made-up batch: %w: loss %g, gradient norm %g", train.ErrNotFinite, r.Loss, norm)
	}
	return fmt.Sprintf("a made-up batch of %s in the largest bucket: loss %#.4g, gradient norm %#.4g", report.Count(v.cfg.BatchSize, "row"), r.Loss, norm), nil
}

// pipelineChecks train as a run does.
func (v *validation) pipelineChecks() []validate.Check {
	serve := refusing([]validate.Check{{Name: checkServe, Needs: []string{validate.Arrival}, Try: v.tryServe, Remedy: "xtts-host plugins list says which can be started"}})
	return append(serve,
		validate.Check{Name: checkSteps, Needs: []string{checkServe, checkCompute}, Try: v.trySteps, Remedy: "the lines above say what works; --debug-dir keeps what a run does"},
		validate.Check{Name: "speed", Needs: []string{checkSteps}, Try: v.trySpeed},
		validate.Check{Name: "memory used", Needs: []string{checkSteps}, Try: v.tryMemory},
		validate.Check{Name: "end", Needs: []string{checkServe}, Try: func(context.Context) (string, error) {
			return "plugins have ended, memory is given back", v.close()
		}, Remedy: "look for processes of plugins that are left: ps ax"},
	)
}

func (v *validation) tryServe(ctx context.Context) (string, error) {
	if err := v.startPlugins(ctx); err != nil {
		return "", err
	}
	var names []string
	for i, p := range v.pools {
		where := "the CPU"
		if v.job.pipeline.UsesGPU(i) && !v.placement.Data.OnCPU() {
			where = placeName(v.placement.Data)
		}
		names = append(names, fmt.Sprintf("%s on %s, %s", v.job.pipeline.Plugins[i].Name(), where, report.Count(p.Workers(), "process")))
	}
	return strings.Join(names, "; "), nil
}

// rehearsal is told of the steps.
type rehearsal struct{ done []event.Step }

// Batch, Step and Evaluated implement train.Observer.
func (*rehearsal) Batch(*pipeline.DeviceSlot)        {}
func (*rehearsal) Evaluated(*event.Evaluation) error { return nil }

func (r *rehearsal) Step(w *event.Step) error {
	if w.Skipped {
		return fmt.Errorf("step %d: %w: loss %g, gradient norm %g", w.Step, train.ErrNotFinite, w.Loss, w.GradNorm)
	}
	r.done = append(r.done, *w)
	return nil
}

// trySteps trains from where the run would begin. Nothing is evaluated and nothing is saved.
func (v *validation) trySteps(ctx context.Context) (_ string, err error) {
	r, c := v.run, v.cfg
	r.began = time.Now()
	if v.temp, err = os.MkdirTemp("", "xtts-host-validate-"); err != nil {
		return "", err
	}
	q, err := batch.OpenQuarantine(filepath.Join(v.temp, report.QuarantineFile), v.data, c.MaxQuarantine)
	if err != nil {
		return "", err
	}
	defer q.Close()
	var p train.Progress
	if v.resumed != nil {
		p, err = r.restore()
	} else {
		err = r.init()
	}
	if err != nil {
		return "", exit.Refused(err)
	}
	r.source = &batch.Source{Train: v.data.Train.Plan, Accumulate: c.Accumulate, Epochs: p.Epoch + 1 + rehearsed, MaxSteps: p.Step + rehearsed, Seed: c.Seed}
	r.source.Start(p)
	whole := batch.Source{Train: v.data.Train.Plan, Accumulate: c.Accumulate, Epochs: c.Epochs, MaxSteps: c.MaxSteps} // its course is the run's
	r.schedule = train.Schedule{Name: c.Schedule, BaseLR: c.LR, WarmupSteps: c.WarmupSteps, TotalSteps: whole.Total()}
	if v.resumed != nil {
		r.schedule.TotalSteps = v.resumed.State.Schedule.TotalSteps
	}
	if err := r.connect(&v.steps, q, nil, p); err != nil {
		return "", exit.Refused(err)
	}
	if err := r.drive(ctx); err != nil {
		return "", v.device.Full(err)
	}
	if n := len(v.steps.done); n != rehearsed {
		return "", fmt.Errorf("training ended after %s", report.Count(n, "step"))
	}
	var losses []string
	for _, w := range v.steps.done {
		losses = append(losses, fmt.Sprintf("%#.4g", w.Loss))
	}
	text := "losses " + strings.Join(losses, ", ")
	if n := q.Count(); n > 0 {
		text += fmt.Sprintf("; %s cannot be used", report.Count(n, "clip"))
	}
	return text, nil
}

// trySpeed tells of the steps behind the first, which waits for everything to warm up. Three are no measurement: xtts-host bench is.
func (v *validation) trySpeed(context.Context) (string, error) {
	var step, wait time.Duration
	for _, w := range v.steps.done[1:] {
		step, wait = step+w.Time, wait+w.InputWait
	}
	n := time.Duration(rehearsed - 1)
	text := fmt.Sprintf("a step takes %s, of which it waits %s for its batch; a batch:", ms(step/n), ms(wait/n))
	stats := v.path.Pipeline.Stats()
	for i, p := range stats.Phases {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", p.Name, ms(p.Busy/time.Duration(max(1, stats.Batches))))
	}
	return text, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", milliseconds(d)) }

// tryMemory compares what the roles have used with what they may.
func (v *validation) tryMemory(context.Context) (string, error) {
	devices, _, err := v.usage(time.Since(v.began))
	if err != nil {
		return "", err
	}
	var used []string
	for _, m := range devices {
		text := fmt.Sprintf("%s (%s) %d", m.Device, m.Role, m.ProcessPeakBytes/gpu.MB)
		if m.LimitBytes > 0 {
			text += fmt.Sprintf(" of %d", m.LimitBytes/gpu.MB)
		}
		used = append(used, text+" MB")
		if m.LimitBytes > 0 && m.ProcessPeakBytes > m.LimitBytes {
			flag := "--" + m.Role + "-gpu-memory"
			return "", hint.Errorf(fmt.Sprintf("give %s %d or more, or a smaller --batch-size", flag, m.ProcessPeakBytes/gpu.MB),
				"%w: %s %d: %s used %d MB", ort.ErrOutOfMemory, flag, m.LimitBytes/gpu.MB, m.Device, m.ProcessPeakBytes/gpu.MB)
		}
	}
	return strings.Join(used, ", "), nil
}
