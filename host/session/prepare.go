package session

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/xtts-host/xtts-host/host/memory"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Updates describes how the optimizer updates the weights on a GPU.
func (s *Session) Updates() string {
	graph := "the graph of " + s.plan.Bundle.Manifest.Optimizer.Name
	if fused, _ := s.Optimizer.Fused(); fused {
		return "a fused kernel, bit-identical to " + graph
	}
	return graph
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
	p, updates, err := s.prepare(s.memory)
	if err != nil {
		return "", s.TooLarge(ctx, err, p.ArenaBytes)
	}
	if p.Fault != nil {
		if s.plan.Config.CUDAGraphs == "on" {
			return "", hint.Errorf("train with --cuda-graphs off", "--cuda-graphs on: %w", p.Fault)
		}
		s.fault = p.Fault
	}
	switch {
	case p.Graphs > 0 && s.fault != nil:
		return fmt.Sprintf("%d of training; none of the optimizer: %v", p.Graphs, s.fault), nil
	case p.Graphs > 0:
		return fmt.Sprintf("%d of training, %d of the optimizer; replays match eager runs; arena %.2f GiB, %.2f s",
			p.Graphs, updates.Graphs, gib(p.ArenaBytes), p.Time.Seconds()), nil
	case s.fault != nil:
		return fmt.Sprintf("off: %v", s.fault), nil
	}
	return fmt.Sprintf("off; trial runs of all buckets: arena %.2f GiB, %.2f s", gib(p.ArenaBytes), p.Time.Seconds()), nil
}

// prepare makes trial runs and captures with model and optimizer, and checks their memory. p describes both.
func (s *Session) prepare(room memory.Plan) (p, updates train.Prepared, err error) {
	if p, err = s.Model.Prepare(); err != nil {
		return train.Prepared{}, updates, err
	}
	if updates, err = s.Optimizer.Prepare(); err != nil {
		return train.Prepared{}, updates, err
	}
	p.ArenaBytes, p.Time, p.Fault = p.ArenaBytes+updates.ArenaBytes, p.Time+updates.Time, cmp.Or(p.Fault, updates.Fault)
	return p, updates, room.Check(p.ArenaBytes)
}

func gib(bytes int) float64 { return float64(bytes) / (1 << 30) }
