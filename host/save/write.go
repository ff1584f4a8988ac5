package save

import (
	"context"
	"errors"
	"syscall"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/shared/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Store stores checkpoints. *checkpoint.Store implements it.
type Store interface {
	Save(ctx context.Context, state checkpoint.State, weights, moments []checkpoint.Tensor) (path string, err error)
	Steps() ([]int64, error)
	Path(step int64) string
	Kept(step int64) string
	Remove(step int64) error
	RemoveAfter(step int64) ([]int64, error)
	Prune(keep int, paths ...string) error
}

// diskError is a fault of the disk, which may pass, at a checkpoint.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// Write writes a checkpoint and returns its folder. Unlike Last, it neither waits for the lines of the steps nor
// publishes an event.
func (s *Saver) Write() (string, error) { return s.write(s.cfg.Training.State()) }

// write writes a checkpoint. If the disk has no room, it removes older ones, the oldest first.
func (s *Saver) write(state checkpoint.State) (string, error) {
	weights, moments, err := s.cfg.Training.Tensors()
	if err != nil {
		return "", err
	}
	for {
		path, err := s.cfg.Store.Save(context.Background(), state, weights, moments)
		if err == nil {
			s.last = path
			return path, nil
		}
		if !files.IsFull(err) {
			if errors.Is(err, syscall.EIO) {
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

// makeRoom removes the oldest checkpoint that is neither the last nor the best, and returns its folder. It returns "" if
// there is none, or if all are kept.
func (s *Saver) makeRoom() (string, error) {
	if s.cfg.KeepLast == 0 {
		return "", nil
	}
	steps, err := s.cfg.Store.Steps()
	if err != nil {
		return "", err
	}
	for _, step := range steps {
		if path := s.cfg.Store.Path(step); path != s.last && path != s.best {
			return path, s.cfg.Store.Remove(step)
		}
	}
	return "", nil
}

// removeOld removes the checkpoints that are no longer needed after that of step was saved.
func (s *Saver) removeOld(step int64) error {
	if s.later {
		if _, err := s.cfg.Store.RemoveAfter(step); err != nil {
			return err
		}
		s.later = false
	}
	if s.cfg.KeepLast == 0 {
		return nil
	}
	return s.cfg.Store.Prune(s.cfg.KeepLast, s.best)
}
