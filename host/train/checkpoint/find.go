package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Steps returns the steps of the checkpoints, intact or not, in order. A run without a folder has none.
func (s *Store) Steps() ([]int64, error) {
	found, err := s.list()
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, path := range found {
		step, _ := rundir.StepOf(filepath.Base(path))
		steps = append(steps, step)
	}
	slices.Reverse(steps)
	return slices.Compact(steps), nil
}

// Before returns the steps of the checkpoints before a step, the newest first. A folder that cannot be read has none.
func (s *Store) Before(step int64) []int64 {
	steps, err := s.Steps()
	if err != nil {
		return nil
	}
	steps = steps[:sort.Search(len(steps), func(i int) bool { return steps[i] >= step })]
	slices.Reverse(steps)
	return steps
}

// Find loads the checkpoint of a name: rundir.Best, rundir.Last, a step, or "" for the last. The checkpoints that it
// returns in addition are those of Latest, which only the last has.
func (s *Store) Find(name string) (*Checkpoint, []Skipped, error) {
	switch name {
	case "", rundir.Last:
		return s.Latest()
	case rundir.Best:
		step, err := best(s)
		if err != nil {
			return nil, nil, err
		}
		c, err := at(s, step)
		return c, nil, err
	}
	step, err := strconv.ParseInt(name, 10, 64)
	if err != nil || step < 0 {
		return nil, nil,
			advise(s, fmt.Errorf("%q is no checkpoint: it is %s, %s or a step", name, rundir.Best, rundir.Last))
	}
	c, err := at(s, step)
	return c, nil, err
}

// best returns the step of the best evaluation that the newest checkpoint knows.
func best(s *Store) (int64, error) {
	c, _, err := s.Latest()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if c.State.Best == nil {
		return 0, advise(s, errors.New("no evaluation before the last checkpoint of the run is the best one"))
	}
	return c.State.Best.Step, nil
}

// at loads the checkpoint of a step.
func at(s *Store, step int64) (*Checkpoint, error) {
	c, err := load(s.fs, s.Path(step))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged):
		return nil, advise(s, fmt.Errorf("there is no checkpoint of step %d", step))
	case errors.Is(err, ErrDamaged):
		return nil, mend(s, s.Path(step), s.Path(step), err)
	case err != nil:
		return nil, advise(s, err)
	}
	return c, nil
}

// advise adds which checkpoints there are.
func advise(s *Store, err error) error {
	const shown = 20
	steps, lerr := s.Steps()
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	if len(steps) == 0 {
		return hint.Errorf("that run has no checkpoint yet", "%w", err)
	}
	var names []string
	for _, step := range steps[max(0, len(steps)-shown):] {
		names = append(names, strconv.FormatInt(step, 10))
	}
	text := strings.Join(names, ", ")
	if more := len(steps) - shown; more > 0 {
		text += fmt.Sprintf(" and %d older ones", more)
	}
	return hint.Errorf("there are checkpoints of the steps "+text, "%w", err)
}

// Remove removes the checkpoint of a step.
func (s *Store) Remove(step int64) error {
	if err := errors.Join(s.remove([]string{s.Path(step)}), s.sweep()); err != nil {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return nil
}

// RemoveAfter removes the checkpoints of later steps, intact or not, and returns their steps. A run that went back to
// step does not come to them any more: it writes the checkpoints of those steps again.
func (s *Store) RemoveAfter(step int64) ([]int64, error) {
	if err := s.Clean(); err != nil {
		return nil, err
	}
	found, err := s.Steps()
	if err != nil {
		return nil, fmt.Errorf("remove checkpoints: %w", err)
	}
	later := found[sort.Search(len(found), func(i int) bool { return found[i] > step }):]
	if len(later) == 0 {
		return nil, nil
	}
	var paths []string
	for _, step := range later {
		paths = append(paths, s.Path(step))
	}
	if err := errors.Join(s.remove(paths), s.sweep()); err != nil {
		return nil, fmt.Errorf("remove checkpoints: %w", err)
	}
	return later, nil
}
