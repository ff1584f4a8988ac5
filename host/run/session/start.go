package session

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Begin checks the initial weights of a new run, which are those of its bundle.
func Begin(s *Session) error { return begin(s, nil, "") }

// begin refuses initial weights that are not finite: taken from a file, or left as the bundle has them.
func begin(s *Session, taken []string, file string) error {
	err := checkpoint.Finite(s.Model.Weights())
	bad, ok := errors.AsType[*checkpoint.NotFiniteError](err)
	if !ok {
		return err
	}
	advice := "name weights that are finite"
	if !slices.Contains(taken, bad.Tensor) {
		file, advice = s.plan.Bundle.Path(ortgraphs.WeightsFile),
			"export the bundle again, from weights that are finite"
	}
	return hint.Errorf(advice, "%s: %w: no training can begin with it", file, err)
}

// restored refuses a checkpoint that is not finite, and names an older one that is.
func restored(s *Session, c *checkpoint.Checkpoint) error {
	err := c.FiniteAs(s.Model.Weights(), s.Model.Average(), s.Optimizers.Moments())
	if err == nil {
		return nil
	}
	run := filepath.Dir(filepath.Dir(c.Path))
	store := checkpoint.NewStore(run)
	advice := "no older checkpoint of the run is finite: start a new one"
	if found := store.Sound(store.Before(c.State.Step)); found != nil {
		defer found.Close()
		advice = fmt.Sprintf("an older checkpoint is finite: go back to it with --resume %s",
			hint.Path(fmt.Sprintf("%s@%d", run, found.State.Step)))
	}
	return hint.Errorf(advice, "%w: no training can continue with it", err)
}

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
	if err := restored(s, start.Resumed); err != nil {
		return err
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
	if err := begin(s, m.Taken, "--init "+from.Path); err != nil {
		return err
	}
	s.Model.BeginAverage()
	if err := s.Model.Push(); err != nil {
		return err
	}
	s.log.Info("init", "from", from.Path, "taken", m.Taken, "other_shape", m.Reshaped, "not_there", m.Missing,
		"not_used", m.Unused)
	fmt.Fprint(out, m.Text(from.Path))
	if len(m.Taken) == 0 {
		return hint.Errorf("tensors are matched by name and shape", "--init %s: no tensor of it fits the bundle %s",
			from.Path, s.plan.Bundle.Manifest.Name)
	}
	return nil
}
