package prepare

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/command/engine"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Options are those of the command beside the settings of a run, of which TrainData is the list.
type Options struct {
	Stages []string // names of instances of the pipeline; nil for all that a run keeps
	Out    string   // the folder
	Shard  Shard
	JSON   bool // write a Result to Out, and the text to Err
}

// flag names the folder.
const flag = "--out"

// Run runs the command. The error is batch.ErrQuarantine if more clips cannot be used than a run allows; all others
// are prepared.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) (err error) {
	text := console.Out
	if o.JSON {
		text = console.Err
	}
	ctx, done := console.Stoppable(ctx, "batch")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	if err := featurecache.Check(flag, o.Out); err != nil { // before the data are read
		return exit.Refused(err)
	}
	p, kept, err := plan.NewFeatures(ctx, set, inventory.Open, console.Waiting(), o.Stages)
	if err != nil {
		return exit.Refused(err)
	}
	defer p.Close()
	w := newWork(p, kept, o)
	w.describe(text)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := w.open(ctx, console, fail); err != nil {
		return exit.Refused(err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, line := range cachedir.Exposed(flag, o.Out, os.Geteuid()) {
		w.Log.Warn(line)
	}
	began, waiting := time.Now(), console.Waiting()
	err = w.run(ctx, func(done, of int) { waiting.Counted("prepared", "clips", done, of) })
	waiting.Close()
	r := w.result(time.Since(began))
	w.sumUp(text, r)
	if o.JSON {
		err = errors.Join(err, report.JSON(console.Out, r))
	}
	n, allowed := len(r.Unusable), batch.Allowed(set.MaxQuarantine, len(w.split.Index.Rows))
	if err == nil && n > allowed {
		err = hint.Errorf("correct or remove the clips, or allow more with --max-quarantine; all others are prepared",
			"%w: %d in the data, but --max-quarantine allows %d", batch.ErrQuarantine, n, allowed)
	}
	return err
}

// open starts the plugins and opens the folder. fail gets the error of a row that cannot be written.
func (w *work) open(ctx context.Context, console console.Console, fail func(error)) (err error) {
	w.Engine, err = engine.OpenPlugins(ctx, w.plan, console, &featurecache.Config{
		Dir: w.Out, Flag: flag, Limit: featurecache.Unlimited, Prepare: true,
		Failed: func(err error) {
			advice := "see to the folder"
			if files.IsFull(err) {
				advice = "free space, or move the folder to a larger disk"
			}
			fail(hint.Errorf(advice+", then start the command again: it goes on from there", flag+": %w", err))
		},
	})
	return err
}
