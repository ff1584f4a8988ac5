package report

import (
	"strings"
	"testing"
)

// TestRanks: the table has a row for each rank, and the advice names the one for which the others wait.
func TestRanks(t *testing.T) {
	own := &Report{
		Device: "GPU 1", InputStallRatio: 0.12, StepMs: StepTime{Distribution: Distribution{Mean: 8.5}},
		PhasesMs: Phases{{Name: "decode", Ms: 37}}, Memory: []Memory{{ProcessPeakBytes: 3 << 30}},
	}
	all := []Rank{{Rank: 0, Host: "a", Device: "GPU 0", StepMs: 8.5}, RankOf(1, "b", own)}
	table := &table{room: 200}
	table.ranks(all)
	for _, want := range []string{
		"rank 0          a, GPU 0: step 8.50 ms, input stall 0.0 %\n",
		"rank 1          b, GPU 1: step 8.50 ms, input stall 12 %, decode 37.0 ms per batch, 3.0 GiB\n",
	} {
		if !strings.Contains(table.b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &table.b)
		}
	}
	if text := straggler(all); !strings.Contains(text, "rank 1 on b, whose batches are not ready in 12 %") {
		t.Error(text)
	}
	if text := straggler(all[:1]); text != "" {
		t.Error(text)
	}
}
