package session

import (
	"context"
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/train/memory"
)

// TooLarge explains why the model does not fit on the model GPU, and finds the largest batch that does. The model is
// closed afterwards. Other errors are returned unchanged. ctx ends the search.
func (s *Session) TooLarge(ctx context.Context, err error) error {
	return s.tooLarge(ctx, err, memory.Use{})
}

// tooLarge is TooLarge for graphs that have run and used so much.
func (s *Session) tooLarge(ctx context.Context, err error, used memory.Use) error {
	if s.Device.Context == nil || !exit.OutOfMemory(err) {
		return err
	}
	defer s.Device.Enter()()
	if cerr := s.closeModel(); cerr != nil {
		return errors.Join(err, cerr)
	}
	c := s.plan.Config
	rows, sure := 0, false
	if searched(s.plan, s.mode) {
		rows, sure = s.largestBatch(ctx)
	}
	return memory.Batch{Rows: c.BatchSize, Buffer: c.BufferSize, Accumulate: c.Accumulate}.Refuse(err, s.Memory.plan,
		used, rows, sure)
}

// searched reports whether to search for a smaller batch. In a benchmark, a batch that does not fit is a result, and
// the next size follows. If plugins use the GPU without a limit, their memory depends on the batch, but trials would
// measure them with the refused batch or not at all.
func searched(p *plan.Plan, mode batch.InputMode) bool {
	growsWithPlugins := p.Placement.Shared() && p.Placement.Model.Limit == 0
	return mode == batch.Overlapped && !growsWithPlugins
}

// largestBatch finds the largest batch below the requested one that fits, by trial. The graph as exported has to fit
// for the proof of a fused one, which needs less: so trials do without compiling kernels for their sizes, and with a
// fused graph a larger batch may fit, too.
func (s *Session) largestBatch(ctx context.Context) (rows int, sure bool) {
	room, _ := s.Memory.plan.Room()
	if room == 0 {
		free, _, err := s.Device.Context.MemInfo()
		if err != nil {
			return 0, false
		}
		room = free
	}
	s.Fusion.never, s.ranks = true, nil // the other ranks try nothing
	rows, sure = memory.Search{
		Rows: s.plan.Config.BatchSize, Room: room, Bundle: s.plan.Bundle,
		Bucket: s.plan.Buckets.Sizes[len(s.plan.Buckets.Sizes)-1], Precision: s.plan.Precision.Graph, Log: s.log,
		Try: func(rows int) (float64, error) {
			used, plan, err := s.tryBatch(rows)
			err = errors.Join(err, s.closeModel())
			if plan.Limit > 0 || err != nil || used.Graphs == 0 {
				return plan.Ratio(used), err
			}
			return float64(room) / float64(used.Graphs), nil
		},
	}.Largest(ctx)
	return rows, sure && (rows == 0 || !s.Fusion.tried)
}

// tryBatch creates the model for batches of so many rows, as a run does, and returns its memory and the plan for it.
func (s *Session) tryBatch(rows int) (used memory.Use, plan memory.Plan, err error) {
	slots, err := s.plan.SlotsFor(rows)
	if err != nil {
		return used, plan, err
	}
	plan = s.plan.MemoryFor(slots)
	room, err := plan.Room()
	if err != nil {
		return used, plan, err
	}
	s.log.Info("smaller batch tried", "rows", rows, "device_slots", slots.Device, "arenas_at_most_mb", room/gpu.MB)
	s.Device.LimitMemory(room)
	if err := s.openModel(slots); err != nil {
		return used, plan, err
	}
	p, err := s.prepare(plan)
	return p.used, plan, err
}
