package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/report"
)

// BenchOptions say what Bench measures.
type BenchOptions struct {
	// Args are flags of training; Environ is the environment that they may come from, too.
	Args, Environ []string
	// BatchSizes are measured one after the other.
	BatchSizes []int
	// Steps of each measurement.
	Steps int
	// JSON is the file for the figures; none when it is empty.
	JSON string
}

// BenchResult is what the file has.
type BenchResult struct {
	Version int    `json:"version"` // 1
	Bundle  string `json:"bundle"`
	// Bucket is the only one that is used, the largest: so steps can be compared.
	Bucket map[string]int    `json:"bucket"`
	Steps  int               `json:"steps"`
	With   map[string]string `json:"with"` // versions
	Rows   []BenchRow        `json:"rows"`
}

// BenchRow is one measurement.
type BenchRow struct {
	BatchSize int    `json:"batch_size"`
	Feeding   string `json:"feeding"`
	Device    string `json:"device"`
	// OfComputeOnly is the speed as a part of that of the row "compute only" of this batch size.
	OfComputeOnly       float64             `json:"of_compute_only"`
	StepsPerSecond      float64             `json:"steps_per_second"`
	FramesPerSecond     float64             `json:"frames_per_second"`
	StepMs              report.Distribution `json:"step_ms"`
	InputStallRatio     float64             `json:"input_stall_ratio"`
	TransferHiddenRatio float64             `json:"transfer_hidden_ratio"`
	// Failed says why there are no figures, such as a batch for which there is no memory.
	Failed string `json:"failed,omitempty"`
}

// benchVariant is a way of feeding that is measured.
type benchVariant struct {
	name string
	how  feeding
	args []string
}

// benchVariants begin with what the others are compared with.
var benchVariants = []benchVariant{
	{"compute only", resident, nil},
	{"synchronous", lockstep, nil},
	{"double buffered", overlapped, []string{"--slots=2"}},
	{"triple buffered", overlapped, []string{"--slots=3"}},
}

// Bench trains with every way of feeding and every batch size, a few steps each, in one bucket, and says what each gives. Without
// --train-data it makes clips that fill the bundle's largest bucket. Nothing of it is left but the file.
func Bench(ctx context.Context, o BenchOptions, console Console) (err error) {
	for _, n := range o.BatchSizes {
		if n < 1 {
			return Usage(fmt.Errorf("--batch-sizes %d: the smallest value is 1", n), "")
		}
	}
	if o.Steps < 10 {
		return Usage(fmt.Errorf("--bench-steps %d: the smallest value is 10", o.Steps), "the first of them is not counted")
	}
	set := config.New()
	if err := set.Parse(o.Args, o.Environ); err != nil {
		return Usage(err, "xtts-host --help lists the flags")
	}
	temp, err := os.MkdirTemp("", "xtts-host-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	b, err := openBundle(set.Graph, set.CacheDir)
	if err != nil {
		return refusal{err}
	}
	args := o.Args
	if set.TrainData == "" {
		largest := 0
		for _, n := range o.BatchSizes {
			largest = max(largest, n)
		}
		data := filepath.Join(temp, "data")
		if err := makeClips(data, b, 2*largest); err != nil {
			return refusal{err}
		}
		args = append(args[:len(args):len(args)], "--train-data", data)
	}
	result := BenchResult{Version: 1, Bundle: b.Manifest.Name, Bucket: b.Manifest.Buckets[len(b.Manifest.Buckets)-1], Steps: o.Steps}
	var sizes []string
	for _, symbol := range slices.Sorted(maps.Keys(result.Bucket)) {
		sizes = append(sizes, fmt.Sprintf("%s %d", symbol, result.Bucket[symbol]))
	}
	fmt.Fprintf(console.Out, "%s, %s each, in the bucket %s\n\n", result.Bundle, report.Count(o.Steps, "step"), strings.Join(sizes, ", "))
	for _, batch := range o.BatchSizes {
		if err := result.measure(ctx, o, args, batch, temp, console); err != nil {
			return err
		}
	}
	if o.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return report.ReplaceFile(o.JSON, append(text, '\n'))
}

// measure adds and prints the rows of one batch size.
func (r *BenchResult) measure(ctx context.Context, o BenchOptions, args []string, batch int, temp string, console Console) error {
	table := tabwriter.NewWriter(console.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "batch %d\tsteps/s\tframes/s\tms a step\tp99\tstall\thidden\tof compute only\n", batch)
	compute := 0.0
	for _, v := range benchVariants {
		run := filepath.Join(temp, "run")
		all := append(args[:len(args):len(args)], "--batch-size", strconv.Itoa(batch), "--max-steps", strconv.Itoa(o.Steps), "--epochs=1000000",
			"--enable-static-shapes", "--checkpoint-every=0", "--log-every=0", "--run-dir", run)
		row, with, err := benchOnce(ctx, v, append(all, v.args...), o.Environ, run, console.Stop)
		if ctx.Err() != nil || errors.Is(err, context.Canceled) {
			return err
		}
		row.BatchSize, row.Feeding = batch, v.name
		if err != nil {
			if row.Failed = err.Error(); ExitCode(err) != 3 {
				return fmt.Errorf("%s, batch size %d: %w", v.name, batch, err)
			}
			fmt.Fprintf(table, "%s\tdoes not fit\n", v.name)
		} else {
			r.With = with
			if v.how == resident {
				compute = row.StepsPerSecond
			}
			if compute > 0 {
				row.OfComputeOnly = row.StepsPerSecond / compute
			}
			fmt.Fprintf(table, "%s\t%.2f\t%.0f\t%.2f ± %.2f\t%.2f\t%.2f %%\t%.1f %%\t%.4f\n", v.name, row.StepsPerSecond, row.FramesPerSecond,
				row.StepMs.Mean, row.StepMs.Std, row.StepMs.P99, 100*row.InputStallRatio, 100*row.TransferHiddenRatio, row.OfComputeOnly)
		}
		r.Rows = append(r.Rows, row)
		if err := os.RemoveAll(run); err != nil {
			return err
		}
	}
	fmt.Fprintln(table)
	return table.Flush()
}

// benchOnce trains once and takes the figures from its report.
func benchOnce(ctx context.Context, v benchVariant, args, environ []string, dir string, stop <-chan struct{}) (row BenchRow, with map[string]string, err error) {
	set := config.New()
	if err := set.Parse(args, environ); err != nil {
		return row, nil, refusal{err}
	}
	if err := trainFed(ctx, set, Console{Out: io.Discard, Err: io.Discard, Stop: stop}, v.how); err != nil {
		return row, nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, reportFile))
	if err != nil {
		return row, nil, err
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return row, nil, err
	}
	return BenchRow{
		Device: r.Device, StepsPerSecond: r.StepsPerSecond, FramesPerSecond: r.FramesPerSecond, StepMs: r.StepMs.Distribution,
		InputStallRatio: r.InputStallRatio, TransferHiddenRatio: r.TransferHiddenRatio,
	}, r.Versions, nil
}
