package replay

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/resume"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// past is what a run has recorded of its steps up to the one that is replayed, and the state to begin with.
type past struct {
	*recorded
	run    string
	step   int64  // of the checkpoint to begin with; 0 for the start of the run
	wanted int64  // the step to replay
	device string // of the run's last process; "" if it is not known

	oldest   *checkpoint.Checkpoint // that the run has kept; nil without any
	history  []report.Change
	verified int
	differs  *difference
}

// lookBack reads what a run has recorded, and changes settings into those that were in force at the step.
func lookBack(set *config.Set, step int64) (_ *past, err error) {
	if set.ResumeAt != "" {
		return nil, hint.Errorf(fmt.Sprintf("name the run: %s --step %d", hint.Path(set.Resume), step),
			"replay chooses the checkpoint itself")
	}
	p := &past{run: set.Resume, wanted: step}
	begin, oldest, err := nearest(p.run, step-1)
	if err != nil {
		return nil, err
	}
	p.oldest = oldest
	if begin != nil {
		p.step = begin.State.Step
		begin.Close() // the plan opens it again
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.recorded, err = readMetrics(p.run, p.step, step); err != nil {
		return nil, err
	}
	if step > p.last {
		return nil, hint.Errorf(fmt.Sprintf("name a step of 1 to %d", p.last), "step %d: %s has only %s so far",
			step, p.run, units.Count(p.last, "step"))
	}
	if r, err := report.Read(filepath.Join(p.run, rundir.ReportFile)); err == nil {
		p.device = r.Device
	}
	if p.history, err = resume.ReadHistory(p.run); err != nil {
		return nil, err
	}
	if err := p.goBack(set); err != nil {
		return nil, err
	}
	set.Adaptive = false
	if set.Silent = true; begin != nil {
		set.ResumeAt = strconv.FormatInt(p.step, 10)
		return p, nil
	}
	set.Resume, set.Init = "", set.FirstInit
	return p, nil
}

func (p *past) close() error {
	if p.oldest == nil {
		return nil
	}
	return p.oldest.Close()
}

// plain are the settings whose former values are known from the record of changes.
var plain = []string{
	"lr", "schedule", "warmup-steps", "min-lr", "lr-decay", "plateau-factor", "plateau-patience", "weight-decay",
	"grad-clip", "batch-size", "accumulate", "seed", "enable-static-shapes", "precision",
}

// goBack takes back the changes of settings (--allow) that the run made at the step and later.
func (p *past) goBack(set *config.Set) error {
	for _, c := range slices.Backward(p.history) {
		switch {
		case c.Name == "schedule/length" || c.Step <= p.step:
		case c.Step < p.wanted:
			return hint.Errorf(fmt.Sprintf("you can replay steps up to %d, and those after a kept checkpoint",
				c.Step), "the run changed %s at step %d (%s -> %s), and its checkpoint of that step is not kept: the "+
				"steps after it cannot be replayed from step %d", c.Name, c.Step, c.From, c.To, p.step)
		case !slices.Contains(plain, c.Name):
			return hint.Errorf("you can replay steps after a checkpoint that the run saved later",
				"the run changed %s after step %d (%s -> %s), and only the new one is known", c.Name, c.Step, c.From,
				c.To)
		default:
			if err := config.Put(set, c.Name, c.From); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(p.run, rundir.ChangesFile), err)
			}
		}
	}
	return nil
}

// explain words the refusal of a plan for a replay, which cannot accept any change.
func (p *past) explain(err error) error {
	if refused, ok := errors.AsType[*resume.RefusedError](err); ok {
		return &changedError{refused, p.wanted}
	}
	return err
}

// changedError says that the step cannot be replayed, because something has changed.
type changedError struct {
	refused *resume.RefusedError
	step    int64
}

func (e *changedError) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines returns the lines of the message (package visible).
func (e *changedError) Lines() []string {
	first := fmt.Sprintf("step %d cannot be replayed, because something has changed since %s:", e.step,
		e.refused.Path)
	return append([]string{first}, e.refused.Lines()[1:]...)
}

// Hint implements the interface of package hint.
func (*changedError) Hint() string {
	return "a replay needs what the run began with: restore it"
}

// fits gives a plan that begins at the start of the run what the run fixed there, and refuses one of other inputs. That
// of a checkpoint has been compared.
func (p *past) fits(of *plan.Plan) error {
	if by := of.BestBy(); strings.HasPrefix(by, report.BySpoken) && watchesEvaluations(of) {
		return hint.Errorf("you can replay runs with another --schedule, or with --best-by loss or a metric",
			"the learning rates of %s depend on %s, which a replay does not measure",
			p.run, by)
	}
	if p.step > 0 || p.oldest == nil {
		return nil
	}
	state := &p.oldest.State
	if len(p.history) == 0 {
		if found := resume.Differences(state.Hashes, of.Hashes); len(found) > 0 {
			return p.explain(&resume.RefusedError{
				Path: p.oldest.Path, Refused: found, Folders: of.ChangedFolders(p.run, state.Hashes),
				Plugins: of.ChangedPlugins(p.run, found),
			})
		}
	}
	for _, c := range p.history {
		setting, _, _ := strings.Cut(c.Name, "/")
		if c.Step <= state.Step && (setting == "schedule" || setting == "warmup-steps") {
			return nil // its schedules are others
		}
	}
	// A later part of the run may have had another length, and the schedules follow the first.
	of.Start.Resumed = &checkpoint.Checkpoint{State: checkpoint.State{Schedule: state.Schedule}}
	for _, player := range state.Players {
		of.Start.Resumed.State.Players = append(of.Start.Resumed.State.Players,
			checkpoint.Player{Name: player.Name, Schedule: player.Schedule})
	}
	return nil
}
