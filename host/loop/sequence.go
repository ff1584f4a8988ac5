package loop

import (
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/plan"
	"github.com/xtts-host/xtts-host/host/train"
)

// Source is the sequence of batches of the whole run.
func Source(p *plan.Plan) *batch.Source {
	c := p.Config
	s := &batch.Source{Train: p.Data.Train.Plan, Accumulate: c.Accumulate, EvalEvery: c.EvalEvery, Epochs: c.Epochs, MaxSteps: c.MaxSteps, Seed: c.Seed, World: p.World}
	if p.Data.Val != nil {
		s.Val = p.Data.Val.Plan
	}
	return s
}

// Schedule is the course of the learning rate over so many steps, or the one that was fixed when the run began.
func Schedule(p *plan.Plan, total int64) train.Schedule {
	c := p.Config
	s := train.Schedule{Name: c.Schedule, BaseLR: c.LR, WarmupSteps: c.WarmupSteps, TotalSteps: total}
	if p.Start.Resumed != nil {
		s.TotalSteps = p.Start.Resumed.State.Schedule.TotalSteps
	}
	return s
}
