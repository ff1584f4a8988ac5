package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/bench"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/follow"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// Options select what Run does.
type Options struct {
	// Steps of each run.
	Steps int
	// Apply is the file that gets the settings of the fastest run; empty: nothing else is tried.
	Apply string
	// Budget is the time for the runs that try changes, and Limited says that the user has named it.
	Budget  time.Duration
	Limited bool
	// ChangeBatch allows another number of rows in a batch, which changes what is trained.
	ChangeBatch bool
	// JSON writes the result to the standard output, and the text to standard error.
	JSON bool
}

// minSteps is the smallest number of steps of a run whose report leaves out the first one.
const minSteps = 10

func (o Options) check(set *config.Set) error {
	switch {
	case set.Resume != "":
		return exit.Usage(fmt.Errorf("--resume %s: profile cannot resume a run", set.Resume),
			"pass the run to --init to use its weights")
	case o.Steps < minSteps:
		return exit.Usage(fmt.Errorf("--num-steps %d: the smallest value is %d", o.Steps, minSteps),
			"fewer steps say too little")
	case o.Budget <= 0:
		return exit.Usage(fmt.Errorf("--budget %s: there is no time to try anything", o.Budget), "write 2m")
	case o.Limited && o.Apply == "":
		return exit.Usage(fmt.Errorf("--budget %s: nothing is tried without --apply", o.Budget),
			"name a file with --apply")
	case o.ChangeBatch && o.Apply == "":
		return exit.Usage(errors.New("--change-batch: nothing is tried without --apply"), "name a file with --apply")
	case o.Apply != "":
		if err := disk.CheckFile(o.Apply); err != nil {
			return exit.Usage(fmt.Errorf("--apply %s: %w", o.Apply, err),
				"name a file in a folder that you can write to")
		}
	}
	return nil
}

// Run measures a run with these settings for some steps, and one that trains on batches which are ready, and prints
// what it found. Without --train-data it makes clips, as bench does. It leaves nothing but the file of Options.Apply.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) (err error) {
	if err := o.check(set); err != nil {
		return err
	}
	figures := console.Out
	if o.JSON {
		console.Out = console.Err
	}
	temp, err := os.MkdirTemp("", "xtts-host-profile-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	cache, err := config.CacheFolder(set.CacheDir)
	if err != nil {
		return exit.Refused(err)
	}
	bundle, err := ortgraphs.Open(set.Graph, cache)
	if err != nil {
		return exit.Refused(err)
	}
	p := &profiler{Options: o, given: set, set: set.Copy(), console: console, bundle: bundle,
		dir: filepath.Join(temp, "run"), run: run.TrainWith}
	if err := p.prepare(filepath.Join(temp, "data")); err != nil {
		return exit.Refused(err)
	}
	r, err := p.profile(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(console.Out, r.Table(console.Columns()))
	if o.Apply != "" {
		r.Applied, err = p.apply(ctx, r)
	}
	if !o.JSON {
		return err
	}
	return errors.Join(err, report.JSON(figures, r))
}

// profiler is a profile in progress.
type profiler struct {
	Options
	given   *config.Set // as the user gave them
	set     *config.Set // of the runs
	console console.Console
	bundle  *ortgraphs.Bundle
	dir     string // of the current run
	made    bool   // the clips
	runs    int    // so far
	place   place.Placement
	run     trainer
	delays  batch.Delays // of the runs; only tests set them
}

// trainer is run.TrainWith.
type trainer func(context.Context, *config.Set, console.Console, batch.Input) (*report.Report, error)

// prepare finds the GPUs, and makes the settings those of a measurement, and clips if there is no data set.
func (p *profiler) prepare(data string) (err error) {
	s := p.set
	if p.place, err = place.Find(&s.Config, inventory.Open); err != nil {
		return err
	}
	if !config.Asked(s, "val-share") {
		s.ValShare = 0 // steps are measured
	}
	p.measure(p.Steps)
	s.Epochs, s.EvalEvery = 1_000_000, 1_000_000_000
	s.CheckpointEvery, s.CheckpointMinutes, s.LogEvery, s.RunDir, s.Silent = 0, 0, 0, p.dir, true
	s.Probe, s.Samples, s.SpokenClips, s.BestBy = nil, "", 0, report.ByLoss
	if p.made = s.TrainData == ""; !p.made {
		return nil
	}
	s.TrainData, s.Buckets = data, config.Buckets{Bundle: true}
	clips := 2 * s.BatchSize
	if p.ChangeBatch {
		clips *= 4 // fill a batch of eight times the rows
	}
	return bench.MakeClips(data, p.bundle, clips, s)
}

// measure makes the runs from now on measure so many steps.
func (p *profiler) measure(steps int) { p.set.MaxSteps = batch.WarmSteps + 1 + int64(steps) }

// train runs some steps with changed settings and returns the report.
func (p *profiler) train(
	ctx context.Context, mode batch.InputMode, changes []bottleneck.Setting,
) (_ *report.Report, err error) {
	set := p.set.Copy()
	for _, c := range changes {
		if err := config.Put(set, c.Name, c.Value); err != nil {
			return nil, exit.Refused(err)
		}
	}
	if err := set.Check(); err != nil {
		return nil, exit.Refused(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	defer p.progress(int(set.MaxSteps))()
	return p.run(ctx, set, console.Console{Out: io.Discard, Err: io.Discard, Stop: p.console.Stop},
		batch.Input{InputMode: mode, Delays: p.delays})
}

// progress shows how far a run of so many steps is, by the lines in its folder, until what it returns is called.
func (p *profiler) progress(steps int) (end func()) {
	p.runs++
	what, waiting, run := fmt.Sprintf("steps of run %d", p.runs), p.console.Waiting(), follow.Brief(p.dir)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer waiting.Close()
		for t := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-stop:
				t.Stop()
				return
			case <-t.C:
			}
			for run.Read(1 << 20) {
			}
			waiting.Counted("measured", what, int(run.Now().Last), steps)
		}
	}()
	return func() { close(stop); <-ended }
}

// say writes lines of text as wide as the terminal.
func (p *profiler) say(format string, values ...any) {
	var text strings.Builder
	visible.Fprintf(&text, format, values...)
	fmt.Fprint(p.console.Out, fold.Text(text.String(), p.console.Columns()))
}

// profile measures the run, and what it would be with other input and other precision.
func (p *profiler) profile(ctx context.Context) (*Result, error) {
	fmt.Fprintf(p.console.Err, "measuring %s, and as many on batches that are ready\n",
		units.Count(p.Steps, "step"))
	r, err := p.train(ctx, batch.NoCheckpoint, nil)
	if err != nil {
		return nil, err
	}
	ready, err := p.train(ctx, batch.ComputeOnly, nil)
	if err != nil {
		return nil, err
	}
	result := ResultOf(r, p.set.BatchSize, p.made)
	h := headroom{p, r, ready}
	result.Headroom = []Headroom{h.loader(), h.secondGPU()}
	for _, measure := range []func(context.Context) (Headroom, error){h.bf16, h.batch} {
		row, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		result.Headroom = append(result.Headroom, row)
	}
	return result, ctx.Err()
}

// gpus counts the GPUs of the machine that may be used; 0 if they cannot be counted.
func (p *profiler) gpus() int {
	n, err := bench.CountGPUs(inventory.Open)
	if err != nil {
		return 0
	}
	return n
}
