package run

import (
	"errors"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/runlog"
	"github.com/xtts-host/xtts-host/host/observe/trace"
	"github.com/xtts-host/xtts-host/host/run/boards"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// outputs are the event bus, the log, the console and the debug files of a run.
type outputs struct {
	began    time.Time
	bus      *event.Bus
	log      *runlog.Log
	warnings report.Warnings
	console  console.Console
	debug    *debug.Folder // nil if it was not requested; so is the trace
	trace    *trace.Writer
	served   *boards.Served
	wait     *files.Patience   // for the disk
	folder   *runfolder.Folder // nil before open
	settings func() error      // writes config.yaml
}

// newOutputs returns the outputs of a run without a folder.
func newOutputs(c console.Console, diskWait float64) *outputs {
	o := &outputs{began: time.Now(), bus: event.NewBus()}
	o.log = runlog.New(func(w *event.Warning) { o.warnings.Add(w.Text); o.bus.Publish(w) })
	warn := func(text string) { o.log.Warn(text) }
	o.bus.Offer("console", c.Sink(o.bus.Snapshot, warn), warn)
	o.console = c.Through(o.bus)
	o.wait = o.console.Patience(diskWait)
	o.wait.Warn(func(err error, limit time.Duration) { o.log.Warn(console.Awaited(err, limit)) })
	return o
}

// open opens the files, before anything that takes long.
func (o *outputs) open(p *plan.Plan, folder *runfolder.Folder) (err error) {
	o.folder = folder
	o.log.Open(folder.Log.File, o.wait)
	o.bus.Require(rundir.LogFile, o.log)
	o.log.WarnOf(folder.Log.Instead)
	o.served.Show(folder.Path)
	if o.debug, err = debug.Open(p.Config.DebugDir); err != nil {
		return err
	}
	if o.trace, err = trace.Create(p.Config.Trace); err != nil {
		return errors.Join(err, o.debug.Close())
	}
	return nil
}

// close closes them. A run does not fail without its timeline.
func (o *outputs) close() error {
	if err := o.trace.Close(); err != nil {
		o.log.Warn(err.Error())
	}
	return o.debug.Close()
}

// reached lets a test stop at a point of a checkpoint.
func (o *outputs) reached(phase checkpoint.Phase) { o.debug.Reach(debug.Point{Phase: string(phase)}) }
