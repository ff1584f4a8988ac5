package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/bench/pytorch"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Against selects the program to compare with; the zero value selects none.
type Against struct {
	Program string // "" or PyTorch
	Python  string // the program; "" means pytorch.Find's
	Builder string // of the bundle; "" for a preset
	Forms   []string
}

// onlyCompute is the input mode of a comparison without steps from audio files.
const onlyCompute = "compute"

// check refuses invalid options.
func (a Against) check(modes []string) error {
	switch {
	case a.Program == "" && (a.Python != "" || a.Builder != "" || a.Forms != nil):
		return exit.Usage(errors.New("--python, --builder and --forms need --against pytorch"), "")
	case a.Program != "" && a.Program != PyTorch:
		return exit.Usage(fmt.Errorf("--against %s: not a program that steps can be compared with", a.Program),
			"give --against "+PyTorch)
	case a.Program != "" && slices.ContainsFunc(modes, func(mode string) bool { return mode != onlyCompute }):
		return exit.Usage(errors.New("--input-modes: a comparison has steps on the device and from audio files only"),
			"give --input-modes compute to leave out those from audio files, or no --input-modes")
	}
	return nil
}

// comparer is a comparison in progress.
type comparer struct {
	*benchmark
	dir        string // temporary
	config     pytorch.Config
	precisions []string // ours
	python     *pytorch.Process
	result     Comparison
	fromFiles  string // placement of steps from audio files
	// Of the batch size in progress:
	reference float64 // PyTorch's loss in f32
	rows      string  // file of the clips for PyTorch; empty if noRows says why there are no steps from audio files
	noRows    string
}

// compare measures and prints the result, also if the benchmark ends early.
func (b *benchmark) compare(ctx context.Context, bundle *ortgraphs.Bundle, temp string) error {
	ctx, done := b.console.Stoppable(ctx, "measurement")
	defer done()
	c := &comparer{benchmark: b, dir: temp, precisions: b.precisions(bundle), fromFiles: OnCPU}
	c.config = pytorch.Config{
		Python: b.Against.Python, Builder: b.Against.Builder, Bundle: bundle.Dir, Device: "cpu", Threads: b.set.Threads,
		Folder: temp,
	}
	device := OnCPU
	if b.at.name != OnCPU {
		if c.fromFiles = b.at.name; c.fromFiles == TwoGPUs {
			c.fromFiles = PluginsOnCPU // PyTorch has one GPU
		}
		b.at.name, device = PluginsOnCPU, b.at.devices["model"]
		c.config.Device = string(b.at.gpus[PluginsOnCPU].model)
	}
	c.result = Comparison{
		Version: ComparisonVersion, Bundle: b.result.Bundle, Bucket: b.result.Bucket, Steps: b.Steps,
		BatchSizes: b.BatchSizes, Rounds: b.Rounds, Device: device,
	}
	if err := c.start(ctx); err != nil {
		return exit.Refused(err)
	}
	defer func() {
		if c.python != nil {
			c.python.Close() // it has answered: how it ends does not matter
		}
	}()
	forms, err := c.forms()
	if err != nil {
		return err
	}
	c.head()
	var failure error
	for _, size := range b.BatchSizes {
		failure = c.measure(ctx, size, ways(c.precisions, forms))
		c.result.judge(size, c.reference)
		c.result.Compare(c.precisions)
		fmt.Fprintln(b.console.Out, b.prose(c.result.Table(size)))
		if failure != nil {
			break
		}
	}
	if context.Cause(ctx) == exit.ErrInterrupted {
		failure = exit.ErrInterrupted
	}
	c.result.Interrupted = failure != nil
	fmt.Fprint(b.console.Out, b.prose(c.result.RatioTable()))
	if !b.JSON {
		return failure
	}
	return errors.Join(failure, report.JSON(b.figures, c.result))
}

// precisions returns our precisions to measure: the requested one, or on a GPU all that the bundle has a fast graph
// for.
func (b *benchmark) precisions(bundle *ortgraphs.Bundle) []string {
	switch {
	case b.set.Precision != config.AutoPrecision:
		return []string{string(b.set.Precision)}
	case b.at.name == OnCPU:
		return []string{"f32"}
	}
	all := []string{"tf32"}
	if bundle.Manifest.HasPrecision(manifest.BF16) {
		all = append(all, "bf16")
	}
	return all
}

// start starts Python, if it does not run.
func (c *comparer) start(ctx context.Context) (err error) {
	if c.python == nil {
		c.python, err = pytorch.Start(ctx, c.config)
	}
	return err
}

// forms returns the forms of PyTorch to measure: by default all but the slow ones.
func (c *comparer) forms() ([]string, error) {
	c.result.PyTorch = c.python.Head
	all := c.python.Head.Forms
	if c.Against.Forms == nil {
		return all, nil
	}
	all = slices.Concat(all, c.python.Head.Slow)
	for _, form := range c.Against.Forms {
		if !slices.Contains(all, form) {
			return nil, exit.Usage(fmt.Errorf("--forms %s: there are %s", form, strings.Join(all, ", ")),
				hint.DidYouMean(form, all))
		}
	}
	return c.Against.Forms, nil
}

// head prints what will be measured.
func (c *comparer) head() {
	c.benchmark.head()
	h := c.result.PyTorch
	fmt.Fprintf(c.console.Err, "PyTorch %s on %s, Python %s\n", h.Torch, h.Device, h.Python)
}

// measure measures every way with one batch size, round by round. An error ends the benchmark.
func (c *comparer) measure(ctx context.Context, size int, all []Way) error {
	c.reference = math.NaN()
	batches, err := c.batches(ctx, size)
	if err != nil {
		return err
	}
	c.rows, c.noRows = "", "not measured"
	if c.InputModes == nil {
		if c.rows, c.noRows, err = c.clips(ctx, size); err != nil {
			return err
		}
	}
	total := len(c.BatchSizes) * c.Rounds * len(all)
	for round := range c.Rounds {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, w := range order {
			c.done++
			if c.result.row(size, w).Failed != "" {
				continue
			}
			times, loss, err := c.timed(ctx, size, w, batches)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			row := c.result.row(size, w)
			outcome := ""
			if err != nil {
				row.Failed = err.Error()
				outcome = brief(row.Failed)
			} else {
				row.Rounds, row.Loss = append(row.Rounds, TimedRound{round, times}), loss
				outcome = fmt.Sprintf("%.2f ms a step", times.StepMs.P50)
				if times.EndToEndMs.Steps > 0 {
					outcome += fmt.Sprintf(", %.2f ms end to end", times.EndToEndMs.Mean)
				}
			}
			fmt.Fprintf(c.console.Err, "%d of %d  batch %d, %s: %s\n", c.done, total, size, w, outcome)
			c.describeFused(size, times.Graphs)
		}
	}
	return nil
}

// batches writes the two batches of a measurement and returns their folder.
func (c *comparer) batches(ctx context.Context, size int) (string, error) {
	debug := filepath.Join(c.dir, fmt.Sprintf("batch-%d", size))
	folder := filepath.Join(debug, "batches")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	short := *c.benchmark
	short.set, short.Steps = c.set.Copy(), 2
	short.set.DebugDir, short.set.Precision = debug, config.F32
	short.set.Fuse, short.set.Attention = config.Off, config.AutoAttention
	r, err := short.once(ctx, size, Variant{c.at.name, ComputeOnly})
	if err != nil {
		return "", fmt.Errorf("batch size %d: %w", size, err)
	}
	c.result.With, c.result.Bucket = r.Versions, r.Data.Buckets[len(r.Data.Buckets)-1]
	return folder, nil
}

// timed measures one way, and returns the loss of the first batch, if it can be compared. An error is the reason why
// there are no figures.
func (c *comparer) timed(ctx context.Context, size int, w Way, batches string) (Times, *float64, error) {
	if w.Program == Host {
		return c.ours(ctx, size, w.Precision)
	}
	if err := c.start(ctx); err != nil {
		return Times{}, nil, err
	}
	m, err := c.python.Measure(
		pytorch.Request{DType: w.Precision, Form: w.Form, Batches: batches, Steps: c.Steps, Clips: c.rows})
	if err != nil {
		if _, alive := errors.AsType[pytorch.Failure](err); !alive {
			c.python = nil
		}
		return Times{}, nil, err
	}
	if m.ReferenceLoss != nil {
		c.reference = *m.ReferenceLoss
	}
	t := Times{
		StepMs: report.DistributionOf(m.StepMs), GradientsMs: report.DistributionOf(m.GradientsMs),
		Memory: Memory{PeakBytes: m.PeakBytes, ReservedBytes: m.ReservedBytes, OptimizerBytes: m.OptimizerBytes},
		StartS: m.StartS,
	}
	t.EndToEnd = EndToEnd{EndToEndFailed: c.noRows}
	if c.rows != "" {
		t.EndToEnd = endToEndOf(m.EndToEnd)
	}
	return t, m.Loss, nil
}

// ours measures this program.
func (c *comparer) ours(ctx context.Context, size int, precision string) (Times, *float64, error) {
	b := *c.benchmark
	b.set = c.set.Copy()
	b.set.Precision = config.Precision(precision)
	r, err := b.once(ctx, size, Variant{c.at.name, ComputeOnly})
	if err != nil {
		return Times{}, nil, err
	}
	t := Times{StepMs: r.StepMs.Distribution, GradientsMs: r.GradientsMs, Graphs: trained(r)}
	for _, m := range r.Memory {
		if m.Role == "model" && m.Device != "cpu" {
			moments := int64(r.Parameters.MomentsBytes)
			t.Memory = Memory{
				PeakBytes: m.ArenaPeakBytes - moments, OptimizerBytes: moments, ProcessPeakBytes: m.ProcessPeakBytes,
			}
		}
	}
	t.EndToEnd = EndToEnd{EndToEndFailed: c.noRows}
	if c.rows != "" {
		t.EndToEnd = b.endToEnd(ctx, size, c.fromFiles)
	}
	loss := float64(r.Loss.First)
	return t, &loss, nil
}
