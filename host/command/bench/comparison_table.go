package bench

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table returns the figures of one batch size as text. It is valid after Compare.
func (c *Comparison) Table(batch int) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "batch %d\tforward and backward ms\tstep ms\tend to end ms\tloss difference\tpeak memory\tmoments\n",
		batch)
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.BatchSize != batch {
			continue
		}
		if row.Failed != "" {
			fmt.Fprintf(t, "%s\t%s\n", row.Way, brief(row.Failed))
			continue
		}
		fmt.Fprint(t, row.Way)
		for _, what := range measures {
			fmt.Fprintf(t, "\t%s", c.cell(row, what))
		}
		fmt.Fprintf(t, "\t%s\t%s\t%s\n", difference(row.LossDifference), megabytes(row.PeakBytes),
			megabytes(row.OptimizerBytes))
	}
	t.Flush()
	fmt.Fprintln(&text, "medians ± standard deviations, end to end means; * fastest form of its precision")
	return text.String()
}

// RatioTable returns the ratios as text.
func (c *Comparison) RatioTable() string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "our time / PyTorch's best\tforward and backward\tstep\tend to end")
	for all := range slices.Chunk(c.Ratios, len(measures)) {
		r := all[0]
		fmt.Fprintf(t, "batch %d, %s of %s", r.BatchSize, r.Host, r.Precision)
		for _, r := range all {
			fmt.Fprintf(t, "\t%s", r)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	return text.String()
}

// String returns the ratio and the form that it is of.
func (r Ratio) String() string {
	if r.Reason != "" {
		return brief(r.Reason)
	}
	return fmt.Sprintf("%s of %s", r.Spread, r.Best)
}

// cell returns a time of a row, with a star if it is that of the fastest form of its precision.
func (c *Comparison) cell(row *Compared, what string) string {
	d := row.times(what)
	if d.Steps == 0 {
		return "-"
	}
	text := fmt.Sprintf("%.2f ± %.2f", typical(d, what), d.Std)
	if c.best(row.BatchSize, row.Precision, what) == row {
		text += " *"
	}
	return text
}

func difference(d *float64) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.1e", *d)
}

func megabytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func (w Way) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", w.Program, w.Precision, w.Form))
}
