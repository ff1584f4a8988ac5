package session

import (
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/plan"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Restore loads the checkpoint of a resumed run into model and optimizer. It writes nothing.
func (s *Session) Restore(start *plan.Start) error {
	if err := s.Pull(); err != nil {
		return err
	}
	restore := start.Resumed.Restore
	if start.Change.NewOptimizer {
		restore = func(weights, _ []checkpoint.Tensor) error { return start.Resumed.RestoreWeights(weights) }
	}
	if err := restore(s.Model.Weights(), s.Optimizers.Moments()); err != nil {
		return err
	}
	s.Model.BeginAverage()
	if saved := start.Resumed; saved.Averages != nil {
		if err := saved.RestoreAverages(s.Model.Average()); err != nil {
			return err
		}
	}
	for i, o := range s.Optimizers {
		o.Steps, o.Averaged = start.Resumed.State.Updates(s.plan.Players[i].Name)
	}
	return errors.Join(s.Model.Push(), s.Optimizers.Push())
}

// Pull updates the host's copies of weights and moments.
func (s *Session) Pull() error { return errors.Join(s.Model.Pull(), s.Optimizers.Pull()) }

// Init loads weights by name, and lists the matches on out.
func (s *Session) Init(from *plan.Weights, out io.Writer) error {
	m, err := from.Into(s.Model.Weights())
	if err != nil {
		return fmt.Errorf("--init %s: %w", from.Path, err)
	}
	s.Model.BeginAverage()
	if err := s.Model.Push(); err != nil {
		return err
	}
	s.log.Info("init", "from", from.Path, "taken", m.Taken, "other_shape", m.Reshaped, "not_there", m.Missing, "not_used", m.Unused)
	fmt.Fprint(out, m.Text(from.Path))
	if len(m.Taken) == 0 {
		return hint.Errorf("tensors are matched by name and shape", "--init %s: no tensor of it fits the bundle %s", from.Path, s.plan.Bundle.Manifest.Name)
	}
	return nil
}
