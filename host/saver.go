package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/disk"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/schedule"
)

// saver saves the run's checkpoints, and decides when. Only the trainer's goroutine uses it.
type saver struct {
	run        *run
	quarantine *batch.Quarantine
	due        due

	samples, frames int64    // trained on, also before a resume
	saved           [2]int64 // step and evaluated step of the last checkpoint, -1 before the first
	best            string   // folder of the best checkpoint that was saved
}

func newSaver(r *run, q *batch.Quarantine, state *checkpoint.State) *saver {
	c := r.plan.Config
	minutes := time.Duration(c.CheckpointMinutes * float64(time.Minute))
	s := &saver{run: r, quarantine: q, due: newDue(c.CheckpointEvery, minutes), saved: [2]int64{-1, -1}}
	if state != nil {
		s.samples, s.frames, s.saved = state.Samples, state.Frames, [2]int64{state.Step, state.EvaluatedStep}
		if state.Best != nil {
			s.best = r.store.Kept(state.Best.Step)
		}
	}
	return s
}

// trained counts the rows and frames of a step.
func (s *saver) trained(step *event.Step) {
	s.samples += int64(len(step.Rows))
	s.frames += int64(step.Frames)
}

// step saves the checkpoint that is due after a step.
func (s *saver) step(step int64) error {
	select {
	case <-s.run.console.Save:
		return s.saveIfRoom(event.Asked)
	default:
	}
	if s.due.after(step) {
		return s.saveIfRoom(event.Periodic)
	}
	return nil
}

// evaluated saves a checkpoint of the best evaluation.
func (s *saver) evaluated(e *event.Evaluation) error {
	if e.Best && s.due.ever() {
		return s.saveIfRoom(event.Best)
	}
	return nil
}

// current reports whether the last checkpoint is up to date.
func (s *saver) current() bool {
	p := &s.run.loop.Train.Progress
	return s.saved == [2]int64{p.Step, p.EvaluatedStep}
}

// saveIfRoom saves a checkpoint during training. A full disk does not end the run: the previous checkpoint stays
// intact, and there may be space for the next one. The lines of metrics.jsonl must fit, however.
func (s *saver) saveIfRoom(why event.Reason) error {
	r := s.run
	err := s.save(why)
	full, ok := errors.AsType[*disk.FullError](err)
	if !ok || filepath.Dir(full.Path) != filepath.Join(r.dir, checkpoint.Folder) {
		return err
	}
	r.log.Warn("the disk is full: the run continues without this checkpoint ("+full.Hint()+")", "step", r.loop.Train.Progress.Step, "error", err)
	return r.bus.Publish(&event.Checkpoint{Step: r.loop.Train.Progress.Step, Reason: why, Err: err})
}

// save saves a checkpoint. It first makes the lines of the steps before it durable.
func (s *saver) save(why event.Reason) error {
	if !s.run.plan.World.Leads() {
		return nil // the leading rank saves the same weights
	}
	r, began := s.run, time.Now()
	defer func() { r.loop.Timeline.Trained("checkpoint", nil, began, time.Now()) }()
	if err := r.bus.Sync(); err != nil {
		return err
	}
	if err := r.session.Pull(); err != nil {
		return err
	}
	p := &r.loop.Train.Progress
	path, err := r.store.Save(context.Background(), s.state(), append(r.session.Model.Weights(), r.session.Model.Average()...), r.session.Optimizer.Moments())
	if err != nil {
		return err
	}
	s.saved = [2]int64{p.Step, p.EvaluatedStep}
	s.due.saved()
	if why == event.Asked {
		fmt.Fprintf(r.console.Err, "saved %s; training continues\n", path)
	}
	if p.Best != nil && p.Best.Step == p.Step {
		s.best = path // without space for a better one, it stays the previous one
	}
	if err := r.bus.Publish(&event.Checkpoint{Step: p.Step, Path: path, Reason: why, Time: time.Since(began)}); err != nil {
		return err
	}
	if r.plan.Config.KeepLast > 0 {
		return r.store.Prune(r.plan.Config.KeepLast, s.best)
	}
	return nil
}

// state returns the content of a checkpoint besides weights and moments.
func (s *saver) state() checkpoint.State {
	r, p := s.run, &s.run.loop.Train.Progress
	epoch, batch := p.Epoch, p.Batch
	if batch == r.plan.Data.Train.Plan.Batches() { // the run may go on with an epoch of another length
		epoch, batch = epoch+1, 0
	}
	state := checkpoint.State{
		Step: p.Step, OptimizerStep: r.session.Optimizer.Steps, Epoch: epoch, Batch: batch, Seed: r.plan.Config.Seed,
		Schedule:      r.plan.Schedule(),
		EvaluatedStep: p.EvaluatedStep, Samples: s.samples, Frames: s.frames,
		Quarantine: s.quarantine.List(), Hashes: r.plan.Hashes,
	}
	if state.Schedule.Name == schedule.Plateau {
		state.Plateau = &p.Plateau
	}
	if decay := r.plan.Config.EMA; decay > 0 {
		state.EMA = &checkpoint.EMA{Decay: decay, Updates: r.session.Optimizer.Averaged}
	}
	if r.plan.Config.EarlyStop > 0 {
		state.EarlyStop = &p.EarlyStop
	}
	if p.Best != nil {
		state.Best = &checkpoint.Best{Step: p.Best.Step, Loss: p.Best.Loss}
	}
	return state
}
