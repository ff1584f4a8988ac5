package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Options select what Run measures.
type Options struct {
	// BatchSizes are measured one after the other.
	BatchSizes []int
	// Steps per measurement.
	Steps int
	// InputModes are the input modes to measure, by their names in InputModes; nil means all.
	InputModes []string
	// Rounds is the number of rounds.
	Rounds int
	// Against compares with another program instead of input modes.
	Against Against
	// JSON writes the figures to the standard output, and the text to standard error.
	JSON bool
}

// check refuses invalid options.
func (o Options) check(set *config.Set) error {
	if set.Resume != "" {
		return exit.Usage(fmt.Errorf("--resume %s: bench cannot resume a run", set.Resume),
			"pass the run to --init to use its weights")
	}
	if len(o.BatchSizes) == 0 {
		return exit.Usage(errors.New("--batch-sizes is empty"), "")
	}
	for _, n := range o.BatchSizes {
		if n < 1 {
			return exit.Usage(fmt.Errorf("--batch-sizes %d: the smallest value is 1", n), "")
		}
	}
	if o.Steps < minSteps {
		return exit.Usage(fmt.Errorf("--bench-steps %d: the smallest value is %d", o.Steps, minSteps),
			"the first step is not counted")
	}
	for _, word := range o.InputModes {
		if InputModes[word] == "" {
			known := slices.Sorted(maps.Keys(InputModes))
			return exit.Usage(fmt.Errorf("--input-modes %s: there are %s", word, strings.Join(known, ", ")),
				hint.DidYouMean(word, known))
		}
	}
	if o.Rounds < 1 {
		return exit.Usage(fmt.Errorf("--bench-rounds %d: the smallest value is 1", o.Rounds), "")
	}
	return o.Against.check(o.InputModes)
}

// minSteps is the shortest run whose report leaves the first step out of the step times, as out of the speed.
const minSteps = 11

// Run runs the benchmark: it trains a few steps with every input mode and every batch size, in one bucket, and prints
// the figures of each. On two GPUs, requested or found, it also trains with one of them. Without --train-data it makes
// clips that fill the bundle's largest bucket, and removes them afterwards. If it is interrupted, it prints what it has
// measured.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) (err error) {
	if err := o.check(set); err != nil {
		return err
	}
	figures := console.Out
	if o.JSON {
		console.Out = console.Err
	}
	at, err := findPlacements(set.Config, inventory.Open)
	if err != nil {
		return exit.Refused(err)
	}
	temp, err := os.MkdirTemp("", "xtts-host-bench-")
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
	b := &benchmark{
		Options: o, set: set.Copy(), console: console, figures: figures, dir: filepath.Join(temp, "run"), at: at,
		fused: map[string]bool{},
	}
	if !config.Asked(set, "val-share") {
		b.set.ValShare = 0 // steps are measured
	}
	if set.TrainData == "" {
		b.made = filepath.Join(temp, "data")
		b.set.TrainData, b.set.Buckets = b.made, config.Buckets{Bundle: true}
		if err := MakeClips(b.set.TrainData, bundle, 2*slices.Max(o.BatchSizes), set); err != nil {
			return exit.Refused(err)
		}
	}
	m := bundle.Manifest
	b.result = Result{
		Version: Version, Bundle: m.Name, Bucket: m.Buckets[len(m.Buckets)-1], Steps: o.Steps, BatchSizes: o.BatchSizes,
		Placement: at.name, Devices: at.devices, Rounds: o.Rounds,
	}
	if o.Against.Program != "" {
		return b.compare(ctx, bundle, temp)
	}
	return b.run(ctx)
}

// benchmark is a benchmark in progress.
type benchmark struct {
	Options
	set     *config.Set
	console console.Console
	figures io.Writer // of the JSON
	dir     string    // of the current run
	made    string    // folder of clips that are made; empty with --train-data
	at      placements
	result  Result
	done    int             // completed measurements
	fused   map[string]bool // the graphs that the output has described
}

// run measures and prints the result, also if the benchmark ends early.
func (b *benchmark) run(ctx context.Context) error {
	r := &b.result
	b.head()
	var failure error
	for _, size := range b.BatchSizes {
		failure = b.measure(ctx, size)
		r.Compare()
		fmt.Fprintln(b.console.Out, b.prose(r.Table(size)))
		if failure != nil {
			break
		}
	}
	if r.Interrupted = failure != nil; r.Interrupted {
		r.Compare()
	}
	if len(r.Rows) > 0 {
		fmt.Fprint(b.console.Out, b.prose(r.GoalTable()))
	}
	if !b.JSON || len(r.Rows) == 0 {
		return failure
	}
	return errors.Join(failure, report.JSON(b.figures, r))
}

// prose folds the sentences beside tables, which stay as wide as they are.
func (b *benchmark) prose(text string) string { return fold.Prose(text, b.console.Columns()) }

// head prints what will be measured.
func (b *benchmark) head() {
	var sizes []string
	for _, symbol := range slices.Sorted(maps.Keys(b.result.Bucket)) {
		sizes = append(sizes, fmt.Sprintf("%s %d", symbol, b.result.Bucket[symbol]))
	}
	bucket := "bucket " + strings.Join(sizes, ", ")
	if b.set.TrainData != b.made {
		bucket = "bucket of the longest clips" // which is known when they are read
	}
	fmt.Fprint(b.console.Out,
		b.prose(fmt.Sprintf("%s, %s each, in the %s\n", b.result.Bundle, units.Count(b.Steps, "step"), bucket)))
	for _, role := range slices.Sorted(maps.Keys(b.result.Devices)) {
		fmt.Fprintf(b.console.Out, "%s on %s\n", map[string]string{"data": "plugins", "model": "the model"}[role],
			b.result.Devices[role])
	}
	fmt.Fprintln(b.console.Out)
}

// measure measures every variant with one batch size, round by round. An error ends the benchmark.
func (b *benchmark) measure(ctx context.Context, size int) error {
	var modes []string
	for _, word := range b.InputModes {
		modes = append(modes, InputModes[word])
	}
	variants := Variants(b.at.name, modes)
	all := len(b.BatchSizes) * b.Rounds * len(variants)
	for round := range b.Rounds {
		for _, v := range InOrder(variants, round) {
			b.done++
			if b.result.Failed(size, v) {
				continue
			}
			r, err := b.once(ctx, size, v)
			name := fmt.Sprintf("%d of %d  batch %d, %s, %s", b.done, all, size, v.InputMode, v.Placement)
			// A batch that does not fit is a result. So is a limit that cannot be met in a placement that was not
			// requested.
			code := exit.Code(err)
			switch {
			case err == nil:
				b.result.With, b.result.Bucket = r.Versions, r.Data.Buckets[len(r.Data.Buckets)-1]
				if b.done == 1 {
					made := ""
					if b.made != "" {
						made = "made-up clips that fill the largest bucket: "
					}
					fmt.Fprintf(b.console.Err, "trained on %s%s\n", made,
						strings.Join(append([]string{r.Data.Train.String()}, r.Data.Train.Lines()...), "; "))
				}
				b.result.Add(size, v, round, Of(r))
				fmt.Fprintf(b.console.Err, "%s: %.2f steps/s\n", name, r.StepsPerSecond)
				b.describeFused(size, trained(r))
			case code == 3 && ctx.Err() == nil:
				b.result.Fail(size, v, "does not fit: "+err.Error())
				fmt.Fprintf(b.console.Err, "%s: does not fit\n", name)
			case code == 2 && v.Placement != b.at.name:
				b.result.Fail(size, v, err.Error())
				visible.Fprintf(b.console.Err, "%s: %v\n", name, err)
			case errors.Is(err, exit.ErrInterrupted):
				return err
			default:
				return fmt.Errorf("%s, batch size %d: %w", v.InputMode, size, err)
			}
		}
	}
	return nil
}

// settings returns the settings of one training run.
func (b *benchmark) settings(size int, v Variant) *config.Set {
	set := b.set.Copy()
	set.BatchSize, set.MaxSteps, set.Epochs, set.StaticShapes = size, batch.WarmSteps+int64(b.Steps), 1_000_000, true
	set.CheckpointEvery, set.LogEvery, set.RunDir, set.Silent = 0, 0, b.dir, true
	switch v.InputMode {
	case DoubleBuffered:
		set.Slots = 2
	case TripleBuffered:
		set.Slots = 3
	}
	if gpus, ok := b.at.gpus[v.Placement]; ok {
		set.DataGPU, set.ModelGPU = gpus.data, gpus.model
	}
	return set
}

// once trains once and returns the report.
func (b *benchmark) once(ctx context.Context, size int, v Variant) (_ *report.Report, err error) {
	set, mode := b.settings(size, v), batch.NoCheckpoint
	switch v.InputMode {
	case ComputeOnly:
		mode = batch.ComputeOnly
	case Synchronous:
		mode = batch.Synchronous
	}
	if err := set.Check(); err != nil {
		return nil, exit.Refused(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	quiet := console.Console{Out: io.Discard, Err: io.Discard, Stop: b.console.Stop}
	return run.TrainWith(ctx, set, quiet, batch.Input{InputMode: mode})
}

// describeFused prints how the graphs of a run are fused, and what is not, once for each batch size.
func (b *benchmark) describeFused(size int, graphs []report.Graph) {
	for _, g := range graphs {
		text := g.Unfused
		if g.Fused != nil {
			text = g.Fused.String()
		}
		if text == "" { // on the CPU
			continue
		}
		what := fmt.Sprintf("batch %d, fused graph%s in %s", size, g.Of(), g.Precision)
		if !b.fused[what] {
			b.fused[what] = true
			visible.Fprintf(b.console.Err, "%s: %s\n", what, text)
		}
	}
}
