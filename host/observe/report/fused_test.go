package report

import (
	"strings"
	"testing"
)

// TestFusedGraphsOfPlayers: the table has a line for the training graph of each player.
func TestFusedGraphsOfPlayers(t *testing.T) {
	r := Report{Graphs: []Graph{
		{Use: Training, Player: "judge", Fused: &Fused{Kernels: 9, Distances: []Float{1e-7}}},
		{Use: Training, Player: "maker", Unfused: "opset 17"}, {Use: Evaluating},
	}}
	r.StepMs.Steps = 1
	table := r.Table("run")
	for _, want := range []string{
		"fused graph     judge: 9 kernels, within 1e-07 of the graph as exported\n",
		"fused graph     maker: none: opset 17\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if n := strings.Count(table, "fused graph"); n != 2 {
		t.Errorf("%d lines of fused graphs", n)
	}
}
