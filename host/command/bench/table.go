package bench

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table returns the figures of one batch size as text. It is valid after Compare.
func (r *Result) Table(batch int) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "batch %d\tsteps/s\tframes/s\tms a step\tp99\tvariation\tstall\thidden\tof compute only", batch)
	onGPU := r.Placement != OnCPU
	if onGPU {
		fmt.Fprint(t, "\tmodel GPU\tdata GPU")
	}
	fmt.Fprintln(t)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.BatchSize != batch {
			continue
		}
		name := row.InputMode
		if row.Placement != r.Placement {
			name += ", " + row.Placement
		}
		if row.Failed != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, brief(row.Failed))
			continue
		}
		s := row.StepMs
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%.2f ± %.2f\t%.2f\t%.1f %%\t%.2f %%\t%.1f %%\t%s", name, row.StepsPerSecond,
			row.FramesPerSecond, s.Mean, s.Std, s.P99, 100*s.Variation, 100*row.InputStallRatio,
			100*row.TransferHiddenRatio, row.OfComputeOnly)
		if onGPU {
			fmt.Fprintf(t, "\t%s\t%s", row.gpu("model"), row.gpu("data"))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	if r.Rounds == 1 {
		fmt.Fprintln(&text, "ms a step: ± the standard deviation; of compute only: ± the standard error; "+
			"--bench-rounds 3 shows how far rounds differ")
	}
	if r.disturbed(batch) {
		fmt.Fprintln(&text, "a ratio above 1 is no gain: something slowed down \"compute only\", such as other work "+
			"on the machine; measure again")
	}
	return text.String()
}

// disturbed reports whether a row of a batch size is faster than the device alone, by more than noise.
func (r *Result) disturbed(batch int) bool {
	const noise = 1.03
	return slices.ContainsFunc(r.Rows, func(row Row) bool {
		return row.BatchSize == batch && row.OfComputeOnly != nil && row.OfComputeOnly.Median > noise
	})
}

// brief shortens the reason for missing figures to one line of a table.
func brief(why string) string {
	if line, _, _ := strings.Cut(why, "\n"); len(line) <= 100 {
		return line
	}
	return strings.ToValidUTF8(why[:100], "") + "..."
}

// String returns the median, and the spread if there is one; "-" for nil.
func (s *Spread) String() string {
	switch {
	case s == nil:
		return "-"
	case s.Error > 0:
		return fmt.Sprintf("%.4f ± %.4f", s.Median, s.Error)
	case s.Min == s.Max:
		return fmt.Sprintf("%.4f", s.Median)
	}
	return fmt.Sprintf("%.4f (%.4f to %.4f)", s.Median, s.Min, s.Max)
}

// String returns the utilization and memory of the GPU; "-" for nil and for unknown values.
func (g *GPU) String() string {
	if g == nil {
		return "-"
	}
	var parts []string
	if g.Samples > 0 {
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*g.Busy))
	}
	if g.PeakBytes > 0 {
		parts = append(parts, fmt.Sprintf("%d MB", g.PeakBytes>>20))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
