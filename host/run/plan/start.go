package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/resume"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Start is the initial state of a run other than the bundle's weights: Resumed or Weights.
type Start struct {
	Resumed *checkpoint.Checkpoint
	Change  *resume.Decision     // of a resumed run, never nil
	Damaged []checkpoint.Skipped // newer ones than Resumed
	Weights *Weights
}

// FindStart opens the initial state. So a checkpoint that does not match is refused before anything is written.
func (d *Draft) FindStart(context.Context) (err error) {
	switch c := d.Config; {
	case c.Resume != "":
		if err := d.openResumed(); err != nil {
			return fmt.Errorf("%s %s: %w", d.set.ResumeFlag, c.Resume, err)
		}
		speakers, languages := d.Data.Train.Index.Numbered(d.Stages.Resolved.Dataset)
		d.Start.Change, err = resume.Decide(resume.Config{
			Folder: c.Resume, Checkpoint: d.Start.Resumed, Now: d.Hashes, Allow: c.Allow,
			Speakers: speakers, Languages: languages,
			Stored: d.Bundle.Stored(), Moments: d.moments(), Length: func() int64 { return d.Source().Total() },
		})
		if refused, ok := errors.AsType[*resume.RefusedError](err); ok {
			refused.Lost = lost(d, d.Start.Resumed.State.Reasons())
			refused.BatchSize = d.batchSizeThatFits()
			refused.Folders = d.ChangedFolders(c.Resume, d.Start.Resumed.State.Hashes)
			refused.Plugins = d.ChangedPlugins(c.Resume, refused.Refused)
		}
		if err == nil {
			err = cmp.Or(d.checkAverage(&d.Start.Resumed.State), checkRate(d), d.unspoken)
		}
		return err
	case c.Init != "":
		if d.Start.Weights, err = openWeights(c.Init); err != nil {
			return exit.Advise(fmt.Errorf("--init %s: %w", c.Init, err),
				"name a safetensors file, or the folder of a run, a checkpoint or a bundle")
		}
	}
	return nil
}

// batchSizeThatFits says how the ranks of now keep the rows of a step that the run to resume has; "" if they do.
func (d *Draft) batchSizeThatFits() string {
	before, err := strconv.Atoi(d.Start.Resumed.State.Hashes["batch_size"])
	ranks := d.World.BatchSize(1)
	switch {
	case err != nil || before == d.World.BatchSize(d.Config.BatchSize):
		return ""
	case d.World.Alone() && config.Asked(d.set, "batch-size"):
		return "" // another number of rows was asked for, and not another number of ranks
	case before%ranks != 0:
		return fmt.Sprintf("start a number of ranks that divides %d, the rows of a step of the run", before)
	}
	return fmt.Sprintf("give --batch-size %d, so that a step of %s has the %d rows that it had", before/ranks,
		units.Count(ranks, "rank"), before)
}

// openResumed opens the checkpoint of --resume, once.
func (d *Draft) openResumed() (err error) {
	if d.Start.Resumed != nil {
		return nil
	}
	d.Start.Resumed, d.Start.Damaged, err = checkpoint.NewStore(d.Config.Resume).Find(d.Config.ResumeAt)
	if errors.Is(err, checkpoint.ErrNone) && len(d.Start.Damaged) == 0 {
		if err := runfolder.Taken(d.Config.Resume); err != nil {
			return err
		}
		return hint.Errorf(
			"start it again with --resume-or-start "+hint.Path(d.Config.Resume)+" and the flags that it had",
			"the run ended before its first checkpoint")
	}
	return err
}

// lost lists the lines of the training list that the run to resume could use and that cannot be used now.
func lost(d *Draft, known map[string]string) (lines []string) {
	split := d.Data.Train
	for _, line := range split.Index.Rejected {
		id := cmp.Or(line.ID, split.Index.Place(line.Line))
		if _, was := known[id]; !was {
			lines = append(lines, split.Unusable([]dataset.Rejected{line})...)
		}
	}
	return lines
}

// checkRate refuses a run whose schedules are at their end: all steps that are left would have the learning rate 0.
func checkRate(d *Draft) error {
	at, last := d.Progress(), d.Source().Total()
	if trains := d.set.ResumeFlag == "--resume"; !trains || at.Step >= last || d.EarlyStop().Over(at.EarlyStop) {
		return nil
	}
	for _, s := range d.Schedules() {
		if !s.Ends() || s.MinLR > 0 || at.Step < s.End() {
			return nil
		}
	}
	run := d.Config.Resume
	if at := d.Config.ResumeAt; at != "" {
		run += "@" + at
	}
	flags := fmt.Sprintf("--resume %s --allow %s", hint.Path(run),
		strings.Join(append(slices.Clone(d.Config.Allow), "schedule"), ","))
	if d.Config.MaxSteps == last {
		flags += fmt.Sprintf(" --max-steps %d", last)
	}
	return hint.Errorf("stretch the schedule to the new length with: "+hint.Command(flags),
		"the schedule of %s ends at step %d, so the learning rate of all steps from there to step %d would be 0",
		hint.Path(d.Config.Resume), at.Step, last)
}

// Progress is how far the run is when it begins.
func (p *Plan) Progress() train.Progress {
	if p.Start.Resumed == nil {
		return train.Progress{}
	}
	state := &p.Start.Resumed.State
	at := train.Progress{Step: state.Step, Epoch: state.Epoch, Batch: state.Batch, EvaluatedStep: state.EvaluatedStep}
	for _, player := range p.Players {
		_, plateau := state.ScheduleOf(player.Name)
		at.Plateaus = append(at.Plateaus, plateau)
	}
	if state.EarlyStop != nil {
		at.EarlyStop = *state.EarlyStop
	}
	if state.Best != nil {
		at.Best = &train.Best{Step: state.Best.Step, Loss: state.Best.Loss, Value: state.Best.Loss}
	}
	return at
}

// WayBack is the command that takes the run of a plan in a folder back to one of its checkpoints, or for nil to its
// start, with a lower learning rate.
func WayBack(p *Plan, folder string, to *checkpoint.Checkpoint) string {
	c := p.Config
	return resume.Back{
		Folder: folder, Checkpoint: to, Now: p.Hashes, Player: p.Players[len(p.Players)-1].Name,
		LR: c.LR, MinLR: c.MinLR, Init: cmp.Or(c.Init, c.FirstInit), Usual: p.Bundle.Manifest.Last().Optimizer.LR,
		LRFactor: len(c.LRFactor) > 0, WeightDecayOf: len(c.WeightDecayOf) > 0,
	}.Command()
}

func (s *Start) close() error {
	var errs []error
	if s.Resumed != nil {
		errs = append(errs, s.Resumed.Close())
	}
	if s.Weights != nil {
		errs = append(errs, s.Weights.Close())
	}
	return errors.Join(errs...)
}
