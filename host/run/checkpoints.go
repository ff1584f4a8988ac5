package run

import (
	"time"

	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
)

// newSaver returns the saver of the run's checkpoints. steady is the last steady step before this process.
func newSaver(r *run, steady int64) *save.Saver {
	c := r.plan.Config
	return save.New(save.Config{
		Steps: c.CheckpointEvery, Interval: time.Duration(c.CheckpointMinutes * float64(time.Minute)),
		KeepLast: c.KeepLast, Total: r.source.Total(), Follows: !r.plan.World.Leads(), Resumed: r.plan.Start.Resumed,
		Steady: steady, Training: r, Store: r.store, Bus: r.bus, Log: r.log.Logger, Patience: r.wait,
		Asked: r.console.Save, Confirm: r.console.Err,
		Spent: func(began, ended time.Time) { r.loop.Timeline.Trained("checkpoint", nil, began, ended) },
	})
}

// Tensors implements save.Training.
func (r *run) Tensors() (weights, moments []checkpoint.Tensor, err error) {
	if err := r.session.Pull(); err != nil {
		return nil, nil, err
	}
	return append(r.session.Model.Weights(), r.session.Model.Average()...), r.session.Optimizers.Moments(), nil
}

// State implements save.Training.
func (r *run) State() checkpoint.State {
	p, o := &r.loop.Train.Progress, r.duties
	r.ranks.Settle()
	epoch, batch := p.Epoch, p.Batch
	if batch == r.plan.Data.Train.Plan.Batches() { // a resumed run may have an epoch of another length
		epoch, batch = epoch+1, 0
	}
	state := checkpoint.State{
		Step: p.Step, Epoch: epoch, Batch: batch, Seed: r.plan.Config.Seed,
		EvaluatedStep: p.EvaluatedStep, Samples: o.trained.samples, Frames: o.trained.frames,
		Quarantine: checkpoint.QuarantineOf(o.quarantine.List()), Hashes: r.plan.Hashes,
	}
	state.Speakers, state.Languages = r.plan.Data.Names()
	if decay := r.plan.Config.EMA; decay > 0 {
		state.EMA = &checkpoint.EMA{Decay: decay}
	}
	schedules := r.plan.Schedules()
	for i, player := range r.plan.Players {
		o := r.session.Optimizers[i]
		own := checkpoint.Player{
			Name: player.Name, OptimizerStep: o.Steps, Averaged: o.Averaged, Schedule: &schedules[i],
		}
		if own.Schedule.Name == schedule.Plateau {
			own.Plateau = &p.Plateaus[i]
		}
		state.Add(own)
	}
	if r.plan.Config.EarlyStop > 0 {
		state.EarlyStop = &p.EarlyStop
	}
	if p.Best != nil {
		state.Best = &checkpoint.Best{Step: p.Best.Step, Loss: p.Best.Loss}
	}
	return state
}
