package host

import (
	"context"
	"errors"
	"fmt"
	"syscall"
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
	last, best      string   // folders of the last checkpoint that was saved or resumed from, and of the best one
}

func newSaver(r *run, q *batch.Quarantine, state *checkpoint.State) *saver {
	c := r.plan.Config
	minutes := time.Duration(c.CheckpointMinutes * float64(time.Minute))
	s := &saver{run: r, quarantine: q, due: newDue(c.CheckpointEvery, minutes), saved: [2]int64{-1, -1}}
	if state != nil {
		s.samples, s.frames, s.saved = state.Samples, state.Frames, [2]int64{state.Step, state.EvaluatedStep}
		s.last = r.plan.Start.Resumed.Path
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

// saveIfRoom saves a checkpoint during training. A disk that is full or fails does not end the run: the previous checkpoint stays
// intact, and the save is tried again after the following steps. The lines of metrics.jsonl must fit, however.
func (s *saver) saveIfRoom(why event.Reason) error {
	err := s.save(why)
	failed, ok := errors.AsType[*unsavedError](err)
	if !ok {
		return err
	}
	r, again := s.run, s.due.tries > 0
	step := r.loop.Train.Progress.Step
	s.due.failed(step)
	if again && why == event.Periodic {
		return nil // has been reported
	}
	text := "a checkpoint could not be written: the run continues without it, and tries again"
	if full, ok := errors.AsType[*disk.FullError](failed.error); ok {
		text = "the disk is full: the run continues without this checkpoint (" + full.Hint() + "), and tries again"
	}
	r.log.Warn(text, "step", step, "error", err)
	return r.bus.Publish(&event.Checkpoint{Step: step, Reason: why, Err: err})
}

// unsavedError is a fault of the disk that may pass, at a checkpoint.
type unsavedError struct{ error }

func (e *unsavedError) Unwrap() error { return e.error }

// write writes a checkpoint. Where the disk has no room for it, older ones are removed: the oldest first, and never the last nor the
// best.
func (s *saver) write() (string, error) {
	r := s.run
	if err := r.session.Pull(); err != nil {
		return "", err
	}
	for {
		weights := append(r.session.Model.Weights(), r.session.Model.Average()...)
		path, err := r.store.Save(context.Background(), s.state(), weights, r.session.Optimizer.Moments())
		if err == nil {
			s.last = path
			return path, nil
		}
		if !disk.IsFull(err) && !errors.Is(err, syscall.EIO) {
			return "", err
		}
		spared, serr := s.spare()
		if spared == "" || serr != nil || !disk.IsFull(err) {
			return "", errors.Join(&unsavedError{err}, serr)
		}
		r.log.Warn("the disk is full: removed a checkpoint to make room for the next", "checkpoint", spared)
	}
}

// spare removes the oldest checkpoint that is neither the last nor the best, and returns its folder; "" if there is none. --keep-last 0
// spares none.
func (s *saver) spare() (string, error) {
	steps, err := s.run.store.Steps()
	if err != nil || s.run.plan.Config.KeepLast == 0 {
		return "", err
	}
	for _, step := range steps {
		if path := s.run.store.Path(step); path != s.last && path != s.best {
			return path, s.run.store.Remove(step)
		}
	}
	return "", nil
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
	p := &r.loop.Train.Progress
	path, err := s.write()
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
	if _, err := r.store.RemoveAfter(p.Step); err != nil { // damaged ones that were passed over
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
	state.Speakers, state.Languages = r.plan.Data.Names()
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
