package save

import (
	"context"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Store stores checkpoints. *checkpoint.Store implements it.
type Store interface {
	Save(ctx context.Context, state checkpoint.State, weights, moments []checkpoint.Tensor) (path string, err error)
	Steps() ([]int64, error)
	Path(step int64) string
	Kept(step int64) string
	Sound(steps []int64) *checkpoint.Checkpoint
	Remove(step int64) error
	RemoveAfter(step int64) ([]int64, error)
	Prune(keep int, paths ...string) error
}

// diskError is a fault of the disk, which may pass, at a checkpoint.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// contents are what a checkpoint is made of. Its values are finite.
type contents struct {
	state            checkpoint.State
	weights, moments []checkpoint.Tensor
}

// NotFiniteError is the end of a run whose weights, averages or moments are not finite any more: no later step mends
// them, so there is no checkpoint of them.
type NotFiniteError struct {
	Step int64
	Err  *checkpoint.NotFiniteError
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("the weights or moments are not finite after step %d, so they are not saved: %v", e.Step, e.Err)
}

func (e *NotFiniteError) Unwrap() error { return e.Err }

// contents returns those of a checkpoint of now.
func (s *Saver) contents() (c contents, err error) {
	c.state = s.cfg.Training.State()
	if c.weights, c.moments, err = s.cfg.Training.Tensors(); err != nil {
		return c, err
	}
	err = checkpoint.Finite(c.weights, c.moments)
	if bad, ok := errors.AsType[*checkpoint.NotFiniteError](err); ok {
		err = &NotFiniteError{c.state.Step, bad}
	}
	return c, err
}

// Write writes a checkpoint and returns its folder. Unlike Last, it neither waits for the lines of the steps nor
// publishes an event.
func (s *Saver) Write() (string, error) {
	c, err := s.contents()
	if err != nil {
		return "", err
	}
	return s.write(c)
}

// write writes a checkpoint. If the disk has no room, it removes older ones, the oldest first.
func (s *Saver) write(c contents) (string, error) {
	for {
		path, err := s.cfg.Store.Save(context.Background(), c.state, c.weights, c.moments)
		if err == nil {
			s.last = path
			return path, nil
		}
		if !files.IsFull(err) {
			if files.MayPass(err) {
				err = &diskError{err}
			}
			return "", err
		}
		if s.cfg.KeepLast == 0 {
			err = hint.Errorf(hint.Of(err)+", or give --keep-last N, so that older checkpoints make room", "%w", err)
		}
		removed, rerr := s.makeRoom()
		if removed == "" || rerr != nil {
			return "", errors.Join(&diskError{err}, rerr)
		}
		s.cfg.Log.Warn("the disk is full: removed a checkpoint to make room for the next", "checkpoint", removed)
	}
}

// makeRoom removes the oldest checkpoint that is neither the last nor the best nor the last good one, and returns its
// folder. It returns "" if there is none, or if all are kept.
func (s *Saver) makeRoom() (string, error) {
	if s.cfg.KeepLast == 0 {
		return "", nil
	}
	steps, err := s.cfg.Store.Steps()
	if err != nil {
		return "", err
	}
	good, _ := s.good(steps)
	for _, step := range steps {
		if path := s.cfg.Store.Path(step); path != s.last && path != s.best && step != good {
			return path, s.cfg.Store.Remove(step)
		}
	}
	return "", nil
}

// removeOld removes the checkpoints that are no longer needed after that of step was saved. While the run diverges it
// removes none.
func (s *Saver) removeOld(step int64) error {
	if s.odd {
		return nil
	}
	if s.later {
		if _, err := s.cfg.Store.RemoveAfter(step); err != nil {
			return err
		}
		s.later = false
	}
	if s.cfg.KeepLast == 0 {
		return nil
	}
	kept := []string{s.best}
	steps, err := s.cfg.Store.Steps()
	if err != nil {
		return err
	}
	if good, ok := s.good(steps); ok && s.age(steps, good) >= s.cfg.KeepLast {
		kept = append(kept, s.cfg.Store.Path(good))
	}
	return s.cfg.Store.Prune(s.cfg.KeepLast, kept...)
}

// age counts the checkpoints after a step, without the best one, which has a place of its own.
func (s *Saver) age(steps []int64, step int64) (n int) {
	for _, later := range steps {
		if later > step && s.cfg.Store.Path(later) != s.best {
			n++
		}
	}
	return n
}
