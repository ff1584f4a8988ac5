package validate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Checks that other checks depend on.
const (
	checkModel   = "model"
	checkGraphs  = "CUDA graphs"
	checkCompute = "forward and backward"
	checkServe   = "plugin processes"
	checkSteps   = "three steps"
	checkMemory  = "memory used"
)

// rehearsed is the number of trained steps.
const rehearsed = 3

// modelChecks create the model on its device and compute with it.
func (v *validation) modelChecks() []preflight.Check {
	needs := []string{Runtime, preflight.Memory, preflight.Learning, preflight.Start}
	memory := "try a smaller --batch-size; " + hint.Command("graph lint BUNDLE looks at the graphs")
	return append(refusing([]preflight.Check{
		{Name: checkModel, Needs: needs, Try: v.tryModel, Remedy: memory},
		{Name: checkGraphs, Needs: []string{checkModel}, Try: v.tryCapture, Remedy: memory},
	}), preflight.Check{Name: checkCompute, Needs: []string{checkGraphs}, Try: v.tryCompute, Remedy: memory})
}

func (v *validation) tryModel(ctx context.Context) (_ string, err error) {
	p := &v.draft.Plan
	for _, line := range preflight.Warnings(v.draft) {
		v.log.Warn(line)
	}
	v.machine, err = machine.Open(ctx, machine.Config{
		Plan: p, Log: v.log, Inventory: inventory.Open, Memory: func(*event.Memory) {},
		Say:      func(line string) { v.log.Warn(line) },
		MinSlots: 2, // a transfer needs two, also if the run has one
	})
	if err != nil {
		return "", err
	}
	v.session = session.New(p, batch.Overlapped, v.machine.Watch, v.log)
	if err := v.session.Open(v.machine.Ring.Bytes()); err != nil {
		return "", v.session.TooLarge(ctx, err)
	}
	weights, grads, slots := v.session.Model.Bytes()
	return fmt.Sprintf("on %s: weights %s MiB, gradients %s MiB, optimizer state %s MiB, device slots %s MiB",
			v.modelPlace(), units.Mebibytes(float64(weights)), units.Mebibytes(float64(grads)),
			units.Mebibytes(float64(v.session.Optimizers.Bytes())), units.Mebibytes(float64(slots))),
		nil
}

// modelPlace names the device of the model in full.
func (v *validation) modelPlace() string {
	if v.draft.OnGPU() {
		return v.draft.Placement.Model.GPU.String()
	}
	return "the CPU with " + units.Count(v.draft.Threads(), "thread")
}

func (v *validation) tryCapture(ctx context.Context) (string, error) {
	if !v.draft.OnGPU() {
		return "none on the CPU", nil
	}
	found, err := v.session.Prepare(ctx)
	if err != nil {
		return "", err
	}
	return found + "; fused graph: " + strings.Join(v.session.Fusion.Lines(), "; ") + "; an update is " +
			v.session.Updates(),
		nil
}

// tryCompute computes gradients of a synthetic batch, and changes no weight.
func (v *validation) tryCompute(context.Context) (string, error) {
	text := fmt.Sprintf("a synthetic batch of %s in the largest bucket:", units.Count(v.draft.Config.BatchSize, "row"))
	for i, o := range v.session.Optimizers {
		r, err := v.session.Model.Try(i, len(v.draft.Buckets.Sizes)-1)
		if err != nil {
			return "", v.session.Device.Full(err)
		}
		norm, finite, err := o.Norm()
		if err != nil {
			return "", err
		}
		name := ""
		if i > 0 {
			text += ","
		}
		if player := v.draft.Players[i].Name; player != "" {
			name = " " + player
		}
		if !finite {
			return "", hint.Errorf("the bundle's training graph overflows on plain noise: compare it with PyTorch, "+
				"and export it again (docs/export.md)",
				"a synthetic batch:%s %w: loss %g, gradient norm %g", name, train.ErrNotFinite, r.Loss, norm)
		}
		text += fmt.Sprintf("%s loss %#.4g, gradient norm %#.4g", name, r.Loss, norm)
	}
	return text, nil
}

// pipelineChecks train in the same way as a run.
func (v *validation) pipelineChecks() []preflight.Check {
	serve := refusing([]preflight.Check{{
		Name: checkServe, Needs: []string{Arrival}, Try: v.tryServe,
		Remedy: hint.Command("plugins list says which can be started"),
	}})
	checks := append(serve,
		preflight.Check{
			Name: checkSteps, Needs: []string{checkServe, checkCompute}, Try: v.trySteps,
			Remedy: "the lines above say what works; --debug-dir keeps what a run does",
		}, preflight.Check{Name: "speed", Needs: []string{checkSteps}, Try: v.trySpeed}, preflight.Check{
			Name: "time of the run", Needs: []string{checkSteps}, Try: cost{v}.tryDuration,
		}, preflight.Check{Name: "disk", Needs: []string{checkSteps}, Try: cost{v}.tryDisk}, preflight.Check{
			Name: checkMemory, Needs: []string{checkSteps}, Try: v.tryMemory,
		})
	return append(append(checks, v.rankChecks()...),
		preflight.Check{Name: "end", Needs: []string{checkServe}, Try: func(context.Context) (string, error) {
			return "plugins have ended, memory is released", v.close()
		}, Remedy: "look for remaining plugin processes with ps ax"},
	)
}

func (v *validation) tryServe(ctx context.Context) (string, error) {
	if err := v.machine.StartPlugins(ctx); err != nil {
		return "", err
	}
	var names []string
	for i, p := range v.machine.Pools {
		where := "the CPU"
		if v.draft.Stages.Resolved.UsesGPU(i) && !v.draft.Placement.Data.OnCPU() {
			where = placeName(v.draft.Placement.Data)
		}
		names = append(names, fmt.Sprintf("%s on %s, %s", v.draft.Stages.Resolved.Plugins[i].Name(), where,
			units.Count(p.Workers(), "process")))
	}
	return strings.Join(names, "; "), nil
}

// rehearsal records the steps.
type rehearsal struct{ done []event.Step }

// Batch, Step and Evaluated implement loop.Duties.
func (*rehearsal) Batch(*pipeline.DeviceSlot)                     {}
func (*rehearsal) Evaluated(*event.Evaluation, *train.Best) error { return nil }

func (r *rehearsal) Step(w *event.Step) error {
	if w.Skipped {
		return fmt.Errorf("step %d: %w: loss %g, gradient norm %g", w.Step, train.ErrNotFinite, w.Loss, w.GradNorm)
	}
	r.done = append(r.done, *w)
	return nil
}

// trySteps trains from the start of the run, without evaluations and checkpoints.
func (v *validation) trySteps(ctx context.Context) (_ string, err error) {
	plan := &v.draft.Plan
	v.began = time.Now()
	q, err := batch.OpenQuarantine("", plan.Data, plan.Config.MaxQuarantine, nil, nil)
	if err != nil {
		return "", err
	}
	defer q.Close()
	p, err := v.begin()
	if err != nil {
		return "", exit.Refused(err)
	}
	p.EarlyStop = schedule.Waiting{} // so that a run which was stopped early can be validated
	few := *plan.Source()
	few.Val, few.EvalEvery, few.Epochs, few.MaxSteps = nil, 0, p.Epoch+1+rehearsed, p.Step+rehearsed
	few.Start(p.Position())
	v.loop, err = loop.New(loop.Config{
		Plan: plan, Machine: v.machine, Session: v.session, Source: &few, Progress: p,
		Stop: v.stop, Duties: &v.steps, Quarantine: q, Bus: v.bus, Log: v.log,
	})
	if err != nil {
		return "", exit.Refused(err)
	}
	if err := v.loop.Run(ctx); err != nil {
		return "", v.session.Device.Full(err)
	}
	if n := len(v.steps.done); n != rehearsed {
		return "", fmt.Errorf("training ended after %s", units.Count(n, "step"))
	}
	var losses []string
	for _, w := range v.steps.done {
		losses = append(losses, fmt.Sprintf("%#.4g", w.Loss))
	}
	text := "losses " + strings.Join(losses, ", ")
	for _, w := range v.steps.done {
		if first := v.steps.done[0].Loss; first > 0 && w.Loss > 10*first {
			return "", hint.Errorf("lower --lr, or lengthen --warmup-steps",
				"%s: that of step %d is more than ten times the first, so the run diverges", text, w.Step)
		}
	}
	if w := plan.World; !w.Alone() {
		text += fmt.Sprintf(", of the rows of rank 0 of %d", w.Size)
	}
	if n := q.Count(); n > 0 {
		text += fmt.Sprintf("; %s cannot be used", units.Count(n, "clip"))
	}
	return text, nil
}

// begin loads the initial state of the run into the model.
func (v *validation) begin() (train.Progress, error) {
	switch start := v.draft.Start; {
	case start.Resumed != nil:
		return v.draft.Progress(), v.session.Restore(&start)
	case start.Weights != nil:
		return train.Progress{}, v.session.Init(start.Weights, io.Discard)
	}
	return train.Progress{}, session.Begin(v.session)
}

// trySpeed reports the steps after the first, which includes the warm-up. Three steps are not a measurement; use
// xtts-host bench.
func (v *validation) trySpeed(context.Context) (string, error) {
	var step, wait time.Duration
	for _, w := range v.steps.done[1:] {
		step, wait = step+w.Time, wait+w.InputWait
	}
	n := time.Duration(rehearsed - 1)
	text := fmt.Sprintf("step %s, of which %s input wait; batch:", ms(step/n), ms(wait/n))
	stats := v.loop.Path.Pipeline.Stats()
	for i, p := range stats.Phases {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", p.Name, ms(p.Busy/time.Duration(max(1, stats.Batches))))
	}
	return text, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }

// tryMemory compares the memory use of the roles with their limits.
func (v *validation) tryMemory(context.Context) (string, error) {
	devices, _, err := v.session.Usage(time.Since(v.began), v.machine.Watch.Figures())
	if err != nil {
		return "", err
	}
	var used []string
	for _, m := range devices {
		if m.Role == "model" {
			v.peak = m.ProcessPeakBytes
		}
		text := fmt.Sprintf("%s (%s) %d", m.Device, m.Role, m.ProcessPeakBytes/gpu.MB)
		if m.LimitBytes > 0 {
			text += fmt.Sprintf(" of %d", m.LimitBytes/gpu.MB)
		}
		used = append(used, text+" MiB")
		if m.LimitBytes > 0 && m.ProcessPeakBytes > m.LimitBytes {
			flag := "--" + m.Role + "-gpu-memory"
			return "", hint.Errorf(
				fmt.Sprintf("give %s %d or more, or a smaller --batch-size", flag, m.ProcessPeakBytes/gpu.MB),
				"%w: %s %d: %s used %d MiB", ort.ErrOutOfMemory, flag, m.LimitBytes/gpu.MB, m.Device,
				m.ProcessPeakBytes/gpu.MB)
		}
	}
	return strings.Join(used, ", ") + cost{v}.activations(), nil
}
