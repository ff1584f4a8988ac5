package report

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
)

// TestFusedGraphs: the table has a line for the training graph of each player, and one for a fused evaluation graph.
func TestFusedGraphs(t *testing.T) {
	r := Report{Graphs: []Graph{
		{Use: Training, Player: "judge", Fused: &Fused{Kernels: 9, Distances: []Float{1e-7}}},
		{Use: Training, Player: "maker", Unfused: "opset 17"}, {Use: Evaluating},
		{Use: Evaluating, Fused: &Fused{Kernels: 3, Distances: []Float{1e-7}}},
	}}
	r.StepMs.Steps = 1
	table := r.Table("run")
	for _, want := range []string{
		"fused graph     judge: 9 kernels, within 1e-07 of the graph as exported\n",
		"fused graph     maker: none: opset 17\n",
		"fused graph     evaluation: 3 kernels, within 1e-07 of the graph as exported\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if n := strings.Count(table, "fused graph"); n != 3 {
		t.Errorf("%d lines of fused graphs", n)
	}
}

// TestPredictedStep: the line has the time, and the warning what takes more than twice its floor, if that is more than
// a tenth of the step. Small kernels have none.
func TestPredictedStep(t *testing.T) {
	kinds := []cost.Kind{{Tensors: []string{"y", "z"}}}
	p := &cost.Prediction{MS: 8.04, Slow: []cost.Slow{
		{Why: "kernels so short", Mend: "more rows", MS: 4, Small: true, Kinds: kinds},
		{Why: "windows are in memory", Mend: "channels", MS: 0.8, Kinds: kinds},
	}}
	f := Fused{Kernels: 9, Predicted: p}
	if got := f.String(); !strings.HasSuffix(got, "exported; a step of the largest bucket is predicted to take 8 ms") {
		t.Error(got)
	}
	if got := SlowStep(p); got != "" {
		t.Error(got)
	}
	p.Slow[1].MS = 0.9
	want := "of a predicted step of 8 ms, 0.9 ms take more than twice their floor: 0.9 ms in y and 1 more: windows " +
		"are in memory; channels that are a multiple of 8 mend that"
	if got := SlowStep(p); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
