package run

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/ending"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// finish saves the last checkpoint if necessary, writes the report and prints the table. outcome is the result of
// training; finish returns it unless it finds a worse error.
func (r *run) finish(outcome error) (*report.Report, error) {
	o := r.duties
	outcome = r.ranks.Asked(outcome, r.console.Stop)
	r.ranks.Fail(outcome)
	r.bus.Publish(&event.Phase{Phase: event.Ending, At: time.Now()})
	err := outcome
	lost := r.bus.Flush()
	if lost != nil && !errors.Is(outcome, lost) {
		err = errors.Join(err, lost)
	}
	if err == nil && !r.mode.Measures() {
		err = cmp.Or(ending.MostlySkipped(o.collector),
			ending.Diverged(&o.divergence, o.collector, &r.loop.Train.Progress))
	}
	switch step := r.loop.Train.Progress.Step; {
	case step > 0 && errors.Is(lost, report.ErrRemoved):
		err = r.rescue(err)
	case step == 0 || ending.Ruined(outcome) || r.mode.Measures() || o.saver.Current():
	case r.session.Optimizers.Incomplete():
		r.log.Warn(fmt.Sprintf(
			"step %d is not saved: its update is incomplete; continue from the previous checkpoint with --resume %s",
			step, hint.Path(r.dir)))
	case lost != nil:
		r.log.Warn(fmt.Sprintf("step %d is not saved: lines of the steps before it could not be written", step))
	default:
		if serr := o.saver.Last(); errors.Is(serr, report.ErrRemoved) {
			err = r.rescue(serr)
		} else if serr != nil {
			// The errors are not joined: an interruption without a checkpoint must not have the exit status of one with
			// a checkpoint.
			if after := err; after != nil {
				serr = fmt.Errorf("%w (after: %v)", serr, after)
			}
			err = serr
		}
	}
	err = ending.Continue(err, r.dir, o.saver.Saved(), r.plan.World)
	err = ending.Advise(err, ending.Before(&o.divergence, o.saver),
		func(to *checkpoint.Checkpoint) string { return plan.WayBack(r.plan, r.dir, to) })
	if cerr := o.close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	out, rerr := r.report(err)
	return out, errors.Join(err, rerr)
}

// rescue saves what was trained after the run folder was removed or moved away: in a new folder, which has no lines of
// the steps before. lost is the error that says so.
func (r *run) rescue(lost error) error {
	if r.mode.Measures() || r.session.Optimizers.Incomplete() {
		return lost
	}
	if err := r.folder.Remake(); err != nil {
		return errors.Join(lost, err)
	}
	r.log.Open(r.folder.Log.File, r.wait)
	if err := r.settings(); err != nil {
		return errors.Join(lost, err)
	}
	path, err := r.duties.saver.Write()
	if err != nil {
		return errors.Join(lost, err)
	}
	return hint.Errorf("continue with --resume "+hint.Path(r.dir),
		"%w; the folder was made again, with the checkpoint %s and without the lines of its steps", lost, path)
}

// report writes report.json and its table, and prints the table. outcome is the error that the run ends with.
func (r *run) report(outcome error) (*report.Report, error) {
	r.bus.Flush() // the last checkpoint and its time; an error of it is known by now
	wall := time.Since(r.began)
	out, err := r.describe(outcome, wall)
	if err != nil {
		return nil, err
	}
	out.AddRanks(r.ranks.Describe(out))
	if c := out.FeatureCache; c != nil {
		r.log.Info("feature cache", "folder", c.Folder, "bytes", c.Bytes, "hits", c.Hits, "misses", c.Misses,
			"hit_ratio", c.HitRatio)
	}
	if err := out.Write(r.dir); err != nil {
		return nil, err
	}
	if !r.mode.Measures() && r.ranks.Leads() {
		page.Try(r.dir, r.log.Warn)
	}
	r.bus.Publish(&event.Finish{
		Step: r.loop.Train.Progress.Step, Outcome: out.Outcome, Wall: wall, EarlyStop: r.loop.EarlyStop(),
	})
	fmt.Fprint(r.console.Out, "\n", out.TableOf(r.dir, r.console.Columns()))
	return out, nil
}
