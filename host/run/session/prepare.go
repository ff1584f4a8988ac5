package session

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Updates describes how the optimizer updates the weights on a GPU.
func (s *Session) Updates() string {
	var names []string
	for _, p := range s.plan.Players {
		names = append(names, p.Optimizer.Name)
	}
	graph := "the graph of " + strings.Join(slices.Compact(names), " and ")
	if yes, _ := s.Optimizers.InKernels(); yes {
		return "a fused kernel, bit-identical to " + graph
	}
	return graph
}

// RankSums is a line that says when gradients are summed over the ranks; empty in a run of one process.
func (s *Session) RankSums() string {
	switch {
	case s.ranks == nil:
		return ""
	case s.sums.Groups == 0 && s.sums.Apart != nil:
		return fmt.Sprintf("rank sums    after the backward pass: %v\n", s.sums.Apart)
	case s.sums.Groups == 0 && s.plan.Config.RankSums == config.SumsBeside:
		return "rank sums    after the backward pass, although --rank-sums beside: that needs the fused graph on a " +
			"GPU, the same on all ranks, and no --accumulate\n"
	case s.sums.Groups == 0:
		return "rank sums    after the backward pass\n"
	}
	by := "NCCL"
	if s.sums.Copied {
		by = "copies between the GPUs"
	}
	return fmt.Sprintf("rank sums    in %s during the backward pass, by %s\n",
		units.Count(s.sums.Groups, "group"), by)
}

// Prepare makes trial runs and captures on the trainer's goroutine, and returns a description of the result. On the CPU
// it does nothing. If the graphs do not fit, it searches for a batch that does; ctx ends the search.
func (s *Session) Prepare(ctx context.Context) (found string, err error) {
	if !s.plan.OnGPU() {
		return "", nil
	}
	runtime.LockOSThread() // for good: captured graphs are the thread's
	if err := s.Device.Context.Bind(); err != nil {
		return "", err
	}
	p, err := s.prepare(s.Memory.plan)
	if err != nil {
		return "", s.tooLarge(ctx, err, p.used)
	}
	s.Memory.used, s.sums = p.used, p.training.Sums
	if err := s.Fusion.prepared(s.plan.Config, p.training, s.log); err != nil {
		return "", err
	}
	if p.fault != nil {
		if s.plan.Config.CUDAGraphs == config.On {
			return "", hint.Errorf("train with --cuda-graphs off", "--cuda-graphs on: %w", p.fault)
		}
		s.fault = p.fault
	}
	switch {
	case p.training.Graphs > 0 && s.fault != nil:
		return fmt.Sprintf("%d of training; none of the optimizer: %v", p.training.Graphs, s.fault), nil
	case p.training.Graphs > 0:
		return fmt.Sprintf("%d of training, %d of the optimizer; replays match eager runs; arena %.2f GiB, %.2f s",
			p.training.Graphs, p.updates.Graphs, gib(p.used.Graphs), p.time().Seconds()), nil
	case s.fault != nil:
		return fmt.Sprintf("off: %v", s.fault), nil
	}
	return fmt.Sprintf("off; trial runs of all buckets: arena %.2f GiB, %.2f s", gib(p.used.Graphs),
			p.time().Seconds()),
		nil
}

// prepared is the result of trial runs and captures.
type prepared struct {
	training, updates train.Prepared
	used              memory.Use
	fault             error // why no graph is captured although that was requested
}

func (p prepared) time() time.Duration { return p.training.Time + p.updates.Time }

// prepare makes trial runs and captures with model and optimizer, and checks their memory against the plan.
func (s *Session) prepare(plan memory.Plan) (p prepared, err error) {
	if p.training, err = s.Model.Prepare(); err != nil {
		return p, err
	}
	if p.updates, err = s.Optimizers.Prepare(); err != nil {
		return p, err
	}
	for _, form := range p.training.Forms {
		s.logFusion("fused training graph", form, p.training.Settled)
	}
	s.logFusion("fused evaluation graph", p.training.Evaluation, p.training.Settled)
	p.fault = cmp.Or(p.training.Fault, p.updates.Fault)
	p.used = s.Memory.measure(p.training.ArenaBytes + p.updates.ArenaBytes)
	s.log.Info("memory of the model GPU", "cuda_graphs", p.training.Graphs+p.updates.Graphs, "arenas_mb",
		p.used.Graphs/gpu.MB, "process_mb", p.used.Process/gpu.MB)
	return p, plan.Check(p.used)
}

// logFusion logs how a graph is fused, if it is.
func (s *Session) logFusion(message string, form train.Form, settled time.Duration) {
	f := form.Fusion
	if f == nil {
		return
	}
	predicted := 0.0
	if f.Predicted != nil {
		predicted = f.Predicted.MS
	}
	s.log.Info(message, "player", form.Player, "predicted_ms", predicted, "kernels", f.Kernels, "left", f.Left,
		"refused", f.Refused, "faulty", f.Faulty, "as_exported", f.AsExported, "unproved", f.Unproved,
		"distances", f.Distances,
		"plan_s", f.Times.Plan.Seconds(), "compile_s", f.Times.Compile.Seconds(), "open_s", f.Times.Open.Seconds(),
		"proof_s", f.Times.Proof.Seconds(), "settle_s", settled.Seconds())
}

func gib(bytes int) float64 { return float64(bytes) / (1 << 30) }
