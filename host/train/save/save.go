// Package save decides when a run saves a checkpoint, saves it, and removes old ones.
package save

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config has what a Saver needs.
type Config struct {
	Steps    int64         // between checkpoints; 0: not by steps
	Interval time.Duration // between checkpoints; 0: not by time
	KeepLast int           // checkpoints; 0 keeps all
	Total    int64         // steps of the run
	// Follows is true in every process of a run but one, whose checkpoints hold the same weights: it saves none.
	Follows bool

	Resumed  *checkpoint.Checkpoint // nil in a new run; it may be closed
	Steady   int64                  // the last steady step before this process (Saver.Step); 0 without one
	Training Training
	Store    Store
	Bus      *event.Bus
	Log      *slog.Logger
	Patience *files.Patience              // of the last checkpoint; nil: it does not wait
	Asked    <-chan struct{}              // requests a checkpoint; may be nil
	Confirm  io.Writer                    // receives the answer to a request
	Spent    func(began, ended time.Time) // receives the time that each checkpoint took
}

// Training is the run whose checkpoints are saved.
type Training interface {
	// State returns the progress of the run.
	State() checkpoint.State
	// Tensors copies the weights and the moments of the optimizer from the device.
	Tensors() (weights, moments []checkpoint.Tensor, err error)
}

// Saver saves the checkpoints of a run. Only the trainer's goroutine uses it.
type Saver struct {
	cfg   Config
	due   due
	saved position // of the last checkpoint
	last  string   // folder of the last checkpoint, saved or resumed from
	best  string   // folder of the best checkpoint
	later bool     // the folder may have checkpoints of later steps: damaged ones, which the resume skipped
	health
}

// position distinguishes two checkpoints of a run.
type position struct{ step, evaluated int64 }

// New returns the Saver of a run. The time of the first checkpoint counts from now.
func New(c Config) *Saver {
	s := &Saver{cfg: c, due: newDue(c.Steps, c.Interval), saved: position{-1, -1}, health: health{steady: c.Steady}}
	if c.Resumed != nil {
		state := &c.Resumed.State
		s.saved, s.last, s.later = positionOf(state), c.Resumed.Path, true
		if state.Best != nil {
			s.best = c.Store.Kept(state.Best.Step)
		}
	}
	return s
}

func positionOf(s *checkpoint.State) position { return position{s.Step, s.EvaluatedStep} }

// Step saves the checkpoint that is due after a step. normal reports whether the step was as the steps before it: its
// loss and gradients are finite, and the loss has not exploded. While steps are not normal, no checkpoint is removed.
// steady reports whether it was normal and its loss near the best level of the run, which shows that the weights before
// it were good.
func (s *Saver) Step(step int64, normal, steady bool) error {
	s.health.step(step, normal, steady)
	select {
	case <-s.cfg.Asked:
		return s.saveIfRoom(event.Asked)
	default:
	}
	if s.due.after(step) {
		return s.saveIfRoom(event.Periodic)
	}
	return nil
}

// Best saves the checkpoint of the best evaluation so far.
func (s *Saver) Best() error {
	if !s.due.ever() {
		return nil
	}
	return s.saveIfRoom(event.Best)
}

// Last saves the last checkpoint of the run. Unlike Step and Best it waits for a disk that has no room, and fails if
// that does not change in the time of Patience.
func (s *Saver) Last() error { return s.save(event.Last) }

// Current reports whether the last checkpoint is up to date.
func (s *Saver) Current() bool {
	state := s.cfg.Training.State()
	return s.saved == positionOf(&state)
}

// Saved is the step of the last checkpoint, or 0 if none is after a step.
func (s *Saver) Saved() int64 { return max(0, s.saved.step) }

// saveIfRoom saves a checkpoint during training. A disk that is full or fails does not end the run: the previous
// checkpoint stays intact, and the save is tried again after the following steps. The lines of metrics.jsonl must fit
// within the time of --disk-wait, however.
func (s *Saver) saveIfRoom(why event.Reason) error {
	err := s.save(why)
	if _, ok := errors.AsType[*diskError](err); !ok {
		return err
	}
	again := s.due.failures > 0
	step := s.cfg.Training.State().Step
	s.due.failed(step)
	if again && why == event.Periodic {
		return nil // has been reported
	}
	failed := &event.Checkpoint{Step: step, Reason: why, Err: err}
	if step >= s.cfg.Total {
		return s.cfg.Bus.Publish(failed) // Last follows, whose error ends the run
	}
	text := "a checkpoint could not be written: the run continues without it, and tries again"
	if files.IsFull(err) {
		text = "the disk is full: the run continues without this checkpoint (" + hint.Of(err) + "), and tries again"
	}
	s.cfg.Log.Warn(text, "step", step, "error", err)
	return s.cfg.Bus.Publish(failed)
}

// writeFor writes a checkpoint. Only the last one waits for the disk: after the others, training goes on.
func (s *Saver) writeFor(why event.Reason, c contents) (path string, err error) {
	if why != event.Last {
		return s.write(c)
	}
	err = s.cfg.Patience.RetryAfter(func() error {
		path, err = s.write(c)
		return err
	}, func(err error) {
		lost := "all that was trained"
		if saved := s.Saved(); saved > 0 {
			lost = fmt.Sprintf("what was trained after step %d", saved)
		}
		advice := fmt.Sprintf("--disk-wait ends the wait after %g s, Ctrl-C at once, and %s is lost then",
			s.cfg.Patience.Limit().Seconds(), lost)
		if h := hint.Of(err); h != "" {
			advice = h + "; " + advice
		}
		s.cfg.Log.Warn("the last checkpoint waits for the disk ("+advice+")", "error", err)
	})
	return path, err
}

// save saves a checkpoint. It first makes the lines of the steps before it durable. All processes of a run find weights
// that are not finite, because all of them end then.
func (s *Saver) save(why event.Reason) error {
	began := time.Now()
	defer func() { s.cfg.Spent(began, time.Now()) }()
	contents, err := s.contents()
	if err != nil || s.cfg.Follows {
		return err
	}
	if err := s.cfg.Bus.Sync(); err != nil {
		return err
	}
	defer s.cfg.Bus.Begin(event.Work{Task: event.Saving, Unit: "a checkpoint", Began: began}).End()
	state := contents.state
	path, err := s.writeFor(why, contents)
	if err != nil {
		return err
	}
	s.saved = positionOf(&state)
	s.due.saved()
	if why == event.Asked {
		visible.Fprintf(s.cfg.Confirm, "saved %s; training continues\n", path)
	}
	if state.Best != nil && state.Best.Step == state.Step {
		s.best = path // without space for a better one, it stays the previous one
	}
	if err := s.cfg.Bus.Publish(&event.Checkpoint{
		Step: state.Step, Path: path, Reason: why, Time: time.Since(began),
	}); err != nil {
		return err
	}
	err = s.removeOld(state.Step)
	if err != nil && why != event.Last && files.MayPass(err) {
		s.cfg.Log.Warn("an old checkpoint could not be removed: the next save tries again", "step", state.Step, "error",
			err)
		return nil
	}
	return err
}
