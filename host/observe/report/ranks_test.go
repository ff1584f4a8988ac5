package report

import (
	"strings"
	"testing"
)

// TestAdviceAboutRanks: the advice is part of the verdict, so every form of the report has it, and once. That of a run
// that has diverged is about that only.
func TestAdviceAboutRanks(t *testing.T) {
	all := []Rank{{Rank: 0, Host: "a", StepMs: 8.5}, {Rank: 1, Host: "b", StepMs: 8.5, InputStallRatio: 0.12}}
	r := &Report{Verdict: Verdict{Advice: []string{"First."}}}
	r.AddRanks(all)
	v := r.Verdict.Advice
	if len(r.Ranks) != 2 || len(v) != 2 || !strings.HasPrefix(v[1], "All ranks wait for rank 1 on b") {
		t.Errorf("%d ranks, advice %q", len(r.Ranks), v)
	}
	if n := strings.Count(r.Table("run"), "All ranks wait for rank 1"); n != 1 {
		t.Errorf("the table has the advice %d times", n)
	}
	r = &Report{Verdict: Verdict{Advice: []string{"It diverged."}, Diverged: true}}
	if r.AddRanks(all); len(r.Ranks) != 2 || len(r.Verdict.Advice) != 1 {
		t.Errorf("diverged: %d ranks, advice %q", len(r.Ranks), r.Verdict.Advice)
	}
	r = &Report{}
	if r.AddRanks(nil); r.Ranks != nil || r.Verdict.Advice != nil {
		t.Errorf("one process: %v, advice %q", r.Ranks, r.Verdict.Advice)
	}
}

// TestRanks: the table has a row for each rank, and the advice names the one for which the others wait.
func TestRanks(t *testing.T) {
	own := &Report{
		Device: "GPU 1", InputStallRatio: 0.12, StepMs: StepTime{Distribution: Distribution{Mean: 8.5}},
		GradientsMs: Distribution{Mean: 6.25}, PhasesMs: Phases{{Name: "decode", Ms: 37}, {Name: "wait", Ms: 1}},
		Memory: []Memory{{ProcessPeakBytes: 3 << 30}},
	}
	all := []Rank{{Rank: 0, Host: "a", Device: "GPU 0", OwnMs: 6, StepMs: 8.5}, RankOf(1, "b", own)}
	table := &table{room: 200}
	table.ranks(all)
	for _, want := range []string{
		"rank 0          a, GPU 0: step 8.50 ms, of which its own part 6.00 ms, input stall 0.0 %\n",
		"rank 1          b, GPU 1: step 8.50 ms, of which its own part 7.25 ms, input stall 12 %, decode 37.0 ms per " +
			"batch, 3.0 GiB\n",
	} {
		if !strings.Contains(table.b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &table.b)
		}
	}
	if text := straggler(all, leastSteps); !strings.Contains(text, "rank 1 on b, whose batches are not ready in 12 %") {
		t.Error(text)
	}
	all[1].InputStallRatio = 0
	if text := straggler(all, leastSteps); text != "All ranks wait for rank 1 on b, whose own part of a step "+
		"takes 7.25 ms, and that of rank 0 6.00 ms: see what else uses its processor or its GPU." {
		t.Error(text)
	}
	for steps, want := range map[int64]bool{49: true, 48: false} { // after the first step
		r := &Report{StepMs: StepTime{Distribution: Distribution{Steps: steps}, FirstStepExcluded: true}}
		if r.AddRanks(all); (len(r.Verdict.Advice) == 1) != want {
			t.Errorf("after 1 + %d steps, advice is %q", steps, r.Verdict.Advice)
		}
	}
	all[1].OwnMs = 6.8 // the difference is less than a tenth of a step
	if text := straggler(all, leastSteps); text != "" {
		t.Error(text)
	}
	if text := straggler(all[:1], leastSteps); text != "" {
		t.Error(text)
	}
}
