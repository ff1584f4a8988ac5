package session

import (
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/plan"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Restore loads a checkpoint into model and optimizer, and returns its progress. It writes nothing.
func (s *Session) Restore(from *checkpoint.Checkpoint) (train.Progress, error) {
	if err := s.Pull(); err != nil {
		return train.Progress{}, err
	}
	if err := from.Restore(s.Model.Weights(), s.Optimizer.Moments()); err != nil {
		return train.Progress{}, err
	}
	if err := errors.Join(s.Model.Push(), s.Optimizer.Push()); err != nil {
		return train.Progress{}, err
	}
	s.Optimizer.Steps = from.State.OptimizerStep
	return Progress(&from.State), nil
}

// Progress returns the progress of a checkpoint.
func Progress(state *checkpoint.State) train.Progress {
	p := train.Progress{Step: state.Step, Epoch: state.Epoch, Batch: state.Batch, EvaluatedStep: state.EvaluatedStep}
	if state.Plateau != nil {
		p.Plateau = *state.Plateau
	}
	if state.EarlyStop != nil {
		p.EarlyStop = *state.EarlyStop
	}
	if state.Best != nil {
		p.Best = &train.Best{Step: state.Best.Step, Loss: state.Best.Loss}
	}
	return p
}

// Pull updates the host's copies of weights and moments.
func (s *Session) Pull() error { return errors.Join(s.Model.Pull(), s.Optimizer.Pull()) }

// Init loads weights by name, and lists the matches on out.
func (s *Session) Init(from *plan.Weights, out io.Writer) error {
	m, err := from.Into(s.Model.Weights())
	if err != nil {
		return fmt.Errorf("--init %s: %w", from.Path, err)
	}
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
