// Package ending judges how a run ends, and says how to go on: after an interruption, a fault, or when it diverged,
// which is that its losses, gradients or weights are not finite any more, or its losses far above what they were.
package ending

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// farAbove is how many times the best validation loss one is that shows nothing good of the weights.
const farAbove = 10

// Good reports whether the loss of an evaluation shows good weights. best is the best evaluation so far, nil without
// one.
func Good(loss float64, best *train.Best) bool {
	finite := !math.IsNaN(loss) && !math.IsInf(loss, 0)
	return finite && (best == nil || best.Loss <= 0 || loss < farAbove*best.Loss)
}

// MostlySkipped is the end of a run, or of a process of it, that has skipped most of its steps: it has not done what it
// was asked to.
func MostlySkipped(c *report.Collector) error {
	skipped, steps := c.Skipped()
	if 2*skipped <= steps {
		return nil
	}
	return fmt.Errorf("%w: %d of %s were skipped", train.ErrNotFinite, skipped, units.Count(steps, "step"))
}

// ErrDiverged is the end of a run whose losses are finite, but those of a model that is ruined.
var ErrDiverged = errors.New("the run diverged")

// Diverged is the end of a run whose last losses are far above its lowest level; nil for others. One step may be noise,
// so it needs two, or an evaluation after the last step that shows the same. An evaluation alone must be far above the
// first loss.
func Diverged(d *report.Divergence, c *report.Collector, p *train.Progress) error {
	losses, e := c.Last()
	return diverged(d, losses, p.Step, e, p.Best)
}

func diverged(d *report.Divergence, losses report.Losses, last int64, e *report.Evaluation, best *train.Best) error {
	high, level := d.Ruined()
	after, loss, first := e != nil && e.Step == last, float64(losses.Last), float64(losses.First)
	switch {
	case high >= 2 || high == 1 && after && !Good(float64(e.Loss), best):
		return fmt.Errorf("%w: the loss of step %d is %.4g, and was %.4g before it rose", ErrDiverged, last, loss,
			level)
	case after && first > 0 && !(float64(e.Loss) < farAbove*first):
		return fmt.Errorf("%w: the loss of the evaluation after step %d is %.4g, and that of the first step was %.4g",
			ErrDiverged, last, float64(e.Loss), first)
	}
	return nil
}

// IsDiverged reports whether an error is that of Diverged.
func IsDiverged(err error) bool { return errors.Is(err, ErrDiverged) }

// until has the checkpoints before a step.
type until struct {
	Checkpoints
	step int64
}

// Before returns the checkpoints of a run. Those of losses that stayed far above the lowest level are not good.
func Before(d *report.Divergence, all Checkpoints) Checkpoints {
	if high, _ := d.Ruined(); high > 0 && d.Normal() > d.Sound() {
		return until{all, d.Sound()}
	}
	return all
}

func (u until) Good() ([]int64, error) {
	good, err := u.Checkpoints.Good()
	return slices.DeleteFunc(good, func(step int64) bool { return step >= u.step }), err
}

// Ruined reports whether an error says that the weights are not finite, or not those of all ranks, so that nothing can
// be saved.
func Ruined(err error) bool {
	_, ok := errors.AsType[*save.NotFiniteError](err)
	return ok || together.Differs(err)
}

// Checkpoints are those of a run: the steps of the good ones, the newest first, and the first of some that can be
// loaded.
type Checkpoints interface {
	Good() ([]int64, error)
	Sound(steps []int64) *checkpoint.Checkpoint
}

// Advise adds the way back to the error of a run that diverged, and returns others as they are. back is the command
// that goes back to a checkpoint, or for nil to the start.
func Advise(err error, of Checkpoints, back func(to *checkpoint.Checkpoint) string) error {
	skipped := errors.Is(err, train.ErrNotFinite)
	if !skipped && !Ruined(err) && !errors.Is(err, ErrDiverged) {
		return err
	}
	var to *checkpoint.Checkpoint
	text := "no checkpoint is known to be good, so start again"
	if good, gerr := of.Good(); gerr == nil {
		if to = of.Sound(good); to != nil {
			defer to.Close()
			text = fmt.Sprintf("the last good checkpoint is that of step %d; go back to it", to.State.Step)
		}
	}
	if skipped {
		text = "listen to the clips of the skipped steps, or examine a step with replay (docs/step.md); " +
			text
	}
	return hint.Errorf(text+" with: "+back(to), "%w", err)
}

// GoodOf describes the last good checkpoint for the report; nil without one.
func GoodOf(of Checkpoints) *report.GoodCheckpoint {
	good, err := of.Good()
	if err != nil || len(good) == 0 {
		return nil
	}
	return &report.GoodCheckpoint{Step: good[0], Folder: rundir.Checkpoints + "/" + rundir.Step(good[0])}
}

// Continue adds a hint to continue the run in a folder from its last checkpoint, of the step saved; 0 without one.
func Continue(err error, dir string, saved int64, w world.World) error {
	if saved == 0 {
		if files.IsFull(err) && hint.Of(err) != "" {
			again := ", then start it again with --resume-or-start " + hint.Path(dir) + " and the flags that it had"
			return hint.Errorf(hint.Of(err)+again, "%w", err)
		}
		return err
	}
	all := ""
	if !w.Alone() {
		all = "all ranks "
	}
	resume := fmt.Sprintf("continue %swith --resume %s (step %d is saved)", all, hint.Path(dir), saved)
	switch {
	case exit.Has(err, exit.StatusRank) && hint.Of(err) == "":
		return hint.Errorf("find out why that rank ended, then "+resume, "%w", err)
	case errors.Is(err, exit.ErrInterrupted):
		return hint.Errorf(resume, "%w", err)
	case files.IsFull(err):
		return hint.Errorf(hint.Of(err)+", then "+resume, "%w", err)
	case exit.Has(err, exit.StatusPlugin):
		return hint.Errorf(hint.Of(err)+"; then "+resume, "%w", err)
	}
	return err
}

// Outcome returns the outcome of training for report.json, and the hint of an error.
func Outcome(err error) (outcome, advice string) {
	switch {
	case err == nil:
		return report.Done, ""
	case errors.Is(err, exit.ErrInterrupted):
		return report.Interrupted, hint.Of(err)
	}
	return err.Error(), hint.Of(err)
}
