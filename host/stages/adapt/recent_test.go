package adapt

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestTimesInRuns: times in a row that are alike count more than the same times in turn.
func TestTimesInRuns(t *testing.T) {
	var inTurn, inRuns []float64
	for i := range 256 {
		inTurn = append(inTurn, float64(1+i%2))
		inRuns = append(inRuns, float64(1+i/32%2))
	}
	a, b := TimesOf(inTurn), TimesOf(inRuns)
	if !near(a.Mean, 1.5) || !near(a.Var, 0.25) || !near(a.Runs, 0.25) {
		t.Errorf("in turn: %+v", a)
	}
	if !near(b.Mean, 1.5) || !near(b.Var, 0.25) || !near(b.Runs, 16*0.25) {
		t.Errorf("in runs: %+v", b)
	}
	if c := TimesOf(inRuns[:40]); c.Runs > 4*c.Var { // means of 8 times are too few
		t.Errorf("40 times: %+v", c)
	}
	if none := TimesOf(nil); none != (Times{}) {
		t.Errorf("none: %+v", none)
	}
}

// TestMeasure: times while the pipeline was held back are replaced by those that follow from the work on the batch.
func TestMeasure(t *testing.T) {
	var r Recent
	add := func(n int, b Batch) {
		for range n {
			r.Add(b)
		}
	}
	add(15, Batch{Work: 0.040, Apart: 0.010, Train: 0.02})
	if m := r.Measure(0); m.Held || m.Ready.N != 0 || m.Train.N != 15 || !near(m.Work, 0.04) {
		t.Errorf("too few to know the speed: %+v", m)
	}
	add(17, Batch{Work: 0.040, Apart: 0.010, Train: 0.02})
	add(32, Batch{Work: 0.080, Apart: 0.500, Held: true})
	m := r.Measure(0.003)
	if m.Held || m.Ready.N != 64 || !near(m.Ready.Mean, 0.015) || !near(m.Ready.Var, 25e-6) || m.Queue != 0.003 {
		t.Errorf("four batches at a time: %+v", m)
	}
	add(200, Batch{Work: 0.080, Apart: 0.700, Held: true, Train: 0.03})
	if m = r.Measure(0); !m.Held || m.Ready.N != 256 || m.Ready.Mean < 0.019 || m.Ready.Mean > 0.02 {
		t.Errorf("held back: %+v", m)
	}
	r.Forget()
	add(1, Batch{Work: 0.080, Apart: 0.020})
	if m = r.Measure(0); m.Held || m.Ready.N != 0 {
		t.Errorf("of another speed: %+v", m)
	}
	if n := r.Fresh(); n != 0 {
		t.Errorf("%d batches are fresh", n)
	}
}

// TestPausesDoNotCount: a checkpoint is not a long step, but all steps may become long.
func TestPausesDoNotCount(t *testing.T) {
	var r Recent
	for i := range 100 {
		b := Batch{Train: 0.01}
		if i%50 == 7 {
			b.Train = 20
		}
		r.Add(b)
	}
	if m := r.Measure(0); m.Train.N != 98 || !near(m.Train.Mean, 0.01) {
		t.Errorf("two pauses: %+v", m.Train)
	}
	for range 60 {
		r.Add(Batch{Train: 0.2})
	}
	if m := r.Measure(0); m.Train.N != 158 {
		t.Errorf("steps become long: %+v", m.Train)
	}
	for range 256 {
		r.Add(Batch{Train: 0.2})
	}
	if m := r.Measure(0); m.Train.N != 256 || !near(m.Train.Mean, 0.2) {
		t.Errorf("all steps are long: %+v", m.Train)
	}
}
