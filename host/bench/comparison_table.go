package bench

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table returns the figures of one batch size as text. It is valid after Compare.
func (c *Comparison) Table(batch int) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "batch %d\tforward and backward ms\tstep ms\tloss difference\tpeak memory\n", batch)
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.BatchSize != batch {
			continue
		}
		if row.Failed != "" {
			fmt.Fprintf(t, "%s\t%s\n", row.Way, brief(row.Failed))
			continue
		}
		g, s := row.GradientsMs, row.StepMs
		fmt.Fprintf(t, "%s\t%.2f ± %.2f%s\t%.2f ± %.2f%s\t%s\t%s\n", row.Way, g.P50, g.Std, c.star(row, "gradients"), s.P50, s.Std, c.star(row, "step"),
			difference(row.LossDifference), megabytes(row.PeakBytes))
	}
	t.Flush()
	fmt.Fprintln(&text, "medians ± standard deviations; * fastest form of its precision")
	return text.String()
}

// RatioTable returns the ratios as text.
func (c *Comparison) RatioTable() string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "our time / PyTorch's best\tforward and backward\tstep")
	for i := 0; i+1 < len(c.Ratios); i += 2 {
		g, s := c.Ratios[i], c.Ratios[i+1]
		fmt.Fprintf(t, "batch %d, %s of %s\t%s\t%s\n", g.BatchSize, g.Host, g.Precision, g, s)
	}
	t.Flush()
	return text.String()
}

// String returns the ratio and the form that it is of.
func (r Ratio) String() string {
	if r.Reason != "" {
		return r.Reason
	}
	return fmt.Sprintf("%s of %s", r.Spread, r.Best)
}

// star marks the fastest form of a precision.
func (c *Comparison) star(row *Compared, what string) string {
	if c.best(row.BatchSize, row.Precision, what) == row {
		return " *"
	}
	return ""
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
