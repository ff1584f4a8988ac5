package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

// timed returns the times of steps of which the gradients take three quarters. From files, one of four takes five times
// as long.
func timed(ms float64) Times {
	t := Times{
		StepMs: report.DistributionOf([]float64{ms, ms}), GradientsMs: report.DistributionOf([]float64{ms * 3 / 4}),
	}
	t.EndToEndMs = report.DistributionOf([]float64{ms, ms, ms, 5 * ms})
	return t
}

// comparison is one of two rounds on a GPU, with losses that differ from 2 by so much.
func comparison(ours, theirs float64) *Comparison {
	c := &Comparison{BatchSizes: []int{8, 16}}
	for round, slow := range []float64{1, 2} {
		for w, ms := range map[Way]float64{
			{Program: Host, Precision: "bf16"}: 10, {PyTorch, "autocast", "eager"}: 40,
			{PyTorch, "autocast", "graphs"}: 20, {PyTorch, "bf16", "compile"}: 12,
		} {
			row, off := c.row(8, w), theirs
			if w.Program == Host {
				off = ours
			}
			loss := 2 + off
			row.Loss = &loss
			row.Rounds = append(row.Rounds, TimedRound{round, timed(ms * slow)})
		}
	}
	c.row(8, Way{PyTorch, "bf16", "eager"}).Failed = "RuntimeError: no"
	c.judge(8, 2)
	c.Compare([]string{"bf16"})
	return c
}

func TestRatios(t *testing.T) {
	c := comparison(0.002, 0)
	if len(c.Ratios) != 6 {
		t.Fatalf("%d ratios, want two precisions of one batch size, each of gradients, steps and from files: %+v",
			len(c.Ratios), c.Ratios)
	}
	for i, want := range []struct {
		precision, what, best string
		ratio                 float64
	}{
		{"autocast", "gradients", "graphs", 0.5}, {"autocast", "step", "graphs", 0.5},
		{"autocast", "end_to_end", "graphs", 0.5}, {"bf16", "gradients", "compile", 10.0 / 12},
		{"bf16", "step", "compile", 10.0 / 12}, {"bf16", "end_to_end", "compile", 10.0 / 12},
	} {
		r := c.Ratios[i]
		if r.Precision != want.precision || r.What != want.what || r.Best != want.best || r.Host != "bf16" ||
			r.Reason != "" || r.Spread == nil {
			t.Fatalf("ratio %d is %+v, want %+v", i, r, want)
		}
		if math.Abs(r.Median-want.ratio) > 0.01 || math.Abs(r.Max-r.Min) > 1e-9 {
			t.Errorf("ratio %d is %+v, want %+v in both rounds", i, r.Spread, want)
		}
	}
	for _, want := range []string{
		"pytorch autocast graphs  15.0", "40.00 ± 34.64 *", "pytorch bf16 eager       RuntimeError: no\n", "1.0e-03",
	} {
		if text := c.Table(8); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text := c.RatioTable()
	if !strings.Contains(text, "batch 8, bf16 of autocast  0.50") || !strings.Contains(text, " of compile") {
		t.Error(text)
	}
}

// TestNoRatioOfAnotherModel: a ratio means nothing if the two programs compute different losses.
func TestNoRatioOfAnotherModel(t *testing.T) {
	for _, r := range comparison(0.1, 0).Ratios {
		if r.Spread != nil || r.Reason != "the losses differ" {
			t.Errorf("our loss is 5 %% higher, and the ratio is %+v", r)
		}
	}
	c := comparison(0, 0.1)
	for _, r := range c.Ratios {
		if r.Spread != nil || r.Reason != "PyTorch has no figures" {
			t.Errorf("the loss of every form is 5 %% higher than PyTorch's in f32, and the ratio is %+v", r)
		}
	}
	if text := c.Table(8); !strings.Contains(text, "its loss differs by 0.05: up to 1e-02 is rounding") {
		t.Error(text)
	}
}

// TestSlowBatchesCount: a loader that is late once in four steps shows in the ratio of steps from files, which is of
// means.
func TestSlowBatchesCount(t *testing.T) {
	c := comparison(0, 0)
	ours := c.row(8, Way{Program: Host, Precision: "bf16"})
	for i := range ours.Rounds {
		ours.Rounds[i].EndToEndMs = report.DistributionOf([]float64{10, 10, 10, 10})
	}
	c.Compare([]string{"bf16"})
	for _, r := range c.Ratios {
		if r.What == "end_to_end" &&
			math.Abs(r.Max-10.0/map[string]float64{"autocast": 40, "bf16": 24}[r.Precision]) > 0.01 {
			t.Errorf("%s: %+v", r.Precision, r.Spread)
		}
	}
}

// TestNoStepsFromFiles: each reason is in the place of the ratio.
func TestNoStepsFromFiles(t *testing.T) {
	for _, c := range []struct{ ours, theirs, want string }{
		{"no clips", "no clips", "no clips"},
		{"", "no WAV", "PyTorch has no figures: no WAV"},
	} {
		all := comparison(0, 0)
		for i := range all.Rows {
			row, reason := &all.Rows[i], c.theirs
			if row.Program == Host {
				reason = c.ours
			}
			for k := range row.Rounds {
				if reason != "" {
					row.Rounds[k].EndToEnd = EndToEnd{EndToEndFailed: reason}
				}
			}
		}
		all.Compare([]string{"bf16"})
		if r := all.Ratios[2]; r.What != "end_to_end" || r.Reason != c.want || r.Spread != nil {
			t.Errorf("%+v, want %q", r, c.want)
		}
		if r := all.Ratios[1]; r.Spread == nil {
			t.Errorf("steps: %+v", r)
		}
	}
}
