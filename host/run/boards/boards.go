// Package boards adds to a run what shows it elsewhere: the curves of TensorBoard, figures for Prometheus, the page
// of --dashboard, and a line for systemd. A run goes on without a board that fails.
package boards

import (
	"log/slog"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/retain"
	"github.com/xtts-host/xtts-host/host/observe/tensorboard"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/train"
)

// Run is what the boards of a run need.
type Run struct {
	Plan     *plan.Plan
	Dir      string
	Progress train.Progress
	Skipped  int64 // steps so far
	Bus      *event.Bus
	Log      *slog.Logger
}

// Add adds the boards that the settings ask for, and what removes the media of old evaluations, before the run
// publishes its start. Of several ranks, the first has them.
func Add(r *Run) {
	c, best := r.Plan.Config, int64(0)
	if !r.Plan.World.Leads() {
		return
	}
	if r.Progress.Best != nil {
		best = r.Progress.Best.Step
	}
	warn := func(text string) { r.Log.Warn(text) }
	if c.KeepMedia > 0 {
		keeper := retain.New(retain.Config{Dir: r.Dir, Keep: c.KeepMedia, Best: best})
		r.Bus.Offer("keep-media", keeper, warn)
	}
	if !c.TensorBoard {
		return
	}
	settings, _ := files.In(r.Dir, rundir.SettingsFile).Read(1 << 20) // it is shown, and not needed
	b, err := tensorboard.Open(tensorboard.Config{
		Dir: r.Dir, Metrics: r.Plan.Bundle.Manifest.Metrics(), Step: r.Progress.Step,
		EvaluatedStep: r.Progress.EvaluatedStep, Skipped: r.Skipped, Best: best, Settings: string(settings),
		Keep: c.KeepMedia,
	})
	if err != nil {
		r.Log.Warn("the run goes on without --tensorboard: " + err.Error())
		return
	}
	r.Bus.Offer("tensorboard", b, warn)
}
