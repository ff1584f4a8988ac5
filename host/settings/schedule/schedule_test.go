package schedule

import (
	"math"
	"testing"
)

func TestLR(t *testing.T) {
	course := func(name string, change func(*Schedule)) Schedule {
		s := Schedule{Name: name, BaseLR: 2, WarmupSteps: 10, DecayStart: 10, TotalSteps: 110}
		if change != nil {
			change(&s)
		}
		return s
	}
	floor := func(s *Schedule) { s.MinLR = 0.5 }
	for _, c := range []struct {
		s          Schedule
		reductions int
		want       map[int64]float64 // by step
	}{
		{course(Constant, nil), 0, map[int64]float64{0: 0.2, 8: 1.8, 9: 2, 1e6: 2}},
		{Schedule{Name: Constant, BaseLR: 2}, 0, map[int64]float64{0: 2, 7: 2}},
		{course(Cosine, nil), 0, map[int64]float64{0: 0.2, 9: 2, 10: 2, 60: 1, 110: 0, 150: 0}},
		{course(Cosine, floor), 0, map[int64]float64{0: 0.2, 9: 2, 10: 2, 60: 1.25, 110: 0.5, 150: 0.5}},
		{course(Linear, nil), 0, map[int64]float64{9: 2, 10: 2, 35: 1.5, 60: 1, 110: 0, 150: 0}},
		{course(Linear, floor), 0, map[int64]float64{60: 1.25, 150: 0.5}},
		{
			course(Exponential, func(s *Schedule) { s.Factor = 0.5 }), 0,
			map[int64]float64{0: 0.2, 9: 2, 10: 2, 11: 1, 13: 0.25},
		},
		{
			course(Exponential, func(s *Schedule) { s.Factor, s.MinLR = 0.5, 1 }), 0,
			map[int64]float64{9: 2, 11: 1.5, 1000: 1},
		},
		{course(Plateau, func(s *Schedule) { s.Factor = 0.5 }), 0, map[int64]float64{0: 0.2, 9: 2, 1e6: 2}},
		{course(Plateau, func(s *Schedule) { s.Factor = 0.5 }), 2, map[int64]float64{50: 0.5}},
		{course(Plateau, func(s *Schedule) { s.Factor, s.MinLR = 0.5, 0.4 }), 5, map[int64]float64{50: 0.4}},
		// The run ended within its warm-up and is resumed.
		{
			course(Cosine, func(s *Schedule) { s.TotalSteps = 5; s.MinLR = 0.1 }), 0,
			map[int64]float64{4: 1, 9: 2, 10: 0.1},
		},
	} {
		for step, want := range c.want {
			if got := c.s.LR(step, c.reductions); math.Abs(got-want) > 1e-12 {
				t.Errorf("%+v: step %d after %d reductions: %v, want %v", c.s, step, c.reductions, got, want)
			}
		}
	}
}

// TestCosineReachesItsPeak: the highest rate of a run is the one that was asked for.
func TestCosineReachesItsPeak(t *testing.T) {
	s := Schedule{Name: Cosine, BaseLR: 0.003, WarmupSteps: 20, DecayStart: 20, TotalSteps: 300}
	highest := 0.0
	for step := range s.TotalSteps {
		highest = max(highest, s.LR(step, 0))
	}
	if highest != s.BaseLR {
		t.Errorf("the highest rate is %v of %v", highest, s.BaseLR)
	}
}

// TestOldCosine: a run saved by a version whose cosine also fell during the warm-up resumes with the same bits.
func TestOldCosine(t *testing.T) {
	old := Schedule{Name: Cosine, BaseLR: 0.003, WarmupSteps: 20, TotalSteps: 300}
	s := Schedule{Name: Cosine, BaseLR: 0.003, WarmupSteps: 20, DecayStart: 20, TotalSteps: 500}.Continue(old)
	for step := range int64(400) {
		want := 0.003
		if step+1 < 20 {
			want *= float64(step+1) / 20
		}
		want *= (1 + math.Cos(math.Pi*min(1, float64(step)/300))) / 2
		if got := s.LR(step, 0); got != want {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
	}
	other := (Schedule{Name: Linear, WarmupSteps: 20, DecayStart: 20, TotalSteps: 500})
	if other.Continue(old) != other {
		t.Errorf("another course continues the old one: %+v", other.Continue(old))
	}
}

func TestPlateau(t *testing.T) {
	s := Schedule{Name: Plateau, BaseLR: 1, WarmupSteps: 10, Factor: 0.1, Patience: 2}
	var state State
	for i, c := range []struct {
		step       int64
		loss       float64
		reductions int
	}{
		{4, 3, 0}, {6, 4, 0}, {8, 4, 0}, {9, 4, 0}, // in the warm-up
		{10, 3, 0}, {12, 2, 0}, {14, 2, 0}, {16, math.NaN(), 1}, {18, 2, 1}, {20, 1, 1}, {22, math.Inf(-1), 1},
		{24, 5, 2}, {26, 5, 2}, {28, 5, 3},
	} {
		before := state.Reductions
		reduced := s.Observe(&state, c.step, c.loss)
		if state.Reductions != c.reductions || reduced != (state.Reductions > before) {
			t.Fatalf("evaluation %d: %+v, reduced %v", i, state, reduced)
		}
	}
	if *state.Best != 1 {
		t.Errorf("best %v", *state.Best)
	}
	state = State{}
	if s.Name = Cosine; s.Observe(&state, 20, 1) || state != (State{}) {
		t.Errorf("cosine looks at losses: %+v", state)
	}
}

func TestEarlyStop(t *testing.T) {
	stop, never := EarlyStop{Evaluations: 2, Delta: 0.5}, EarlyStop{}
	var w, none Waiting
	for i, c := range []struct {
		loss float64
		over bool
	}{{math.NaN(), false}, {4, false}, {3.6, false}, {3.4, false}, {3, false}, {2.95, true}} {
		stop.Observe(&w, c.loss)
		never.Observe(&none, c.loss)
		if stop.Over(w) != c.over || never.Over(none) {
			t.Errorf("evaluation %d: %+v: over %v", i, w, stop.Over(w))
		}
	}
	if *w.Best != 3.4 {
		t.Errorf("best %v", *w.Best)
	}
}

func TestUntil(t *testing.T) {
	long := Schedule{Name: Cosine, WarmupSteps: 20, DecayStart: 20, TotalSteps: 300}
	short := long
	short.TotalSteps = 10
	for _, c := range []struct {
		s    Schedule
		last int64
		want string
	}{
		{Schedule{Name: Constant}, 300, "constant"},
		{
			Schedule{Name: Cosine, WarmupSteps: 20, TotalSteps: 300}, 300,
			"cosine to 0 at step 300 after 20 steps of warm-up",
		},
		{long, 300, "cosine to 0 at step 300 after 20 steps of warm-up"},
		{long, 400, "cosine to 0 at step 300 after 20 steps of warm-up"},
		{long, 21, "cosine to 0 at step 300 after 20 steps of warm-up"},
		{long, 20, "cosine, not begun: the warm-up lasts until step 20"},
		{short, 10, "cosine, not begun: the warm-up lasts until step 20"},
		{short, 40, "cosine to 0 at step 20 after 20 steps of warm-up"}, // resumed
		{
			Schedule{Name: Linear, MinLR: 1e-5, WarmupSteps: 1, TotalSteps: 300}, 300,
			"linear to 1e-05 at step 300 after 1 step of warm-up",
		},
		{
			Schedule{Name: Exponential, Factor: 0.999, MinLR: 1e-5}, 300,
			"exponential, times 0.999 a step, at least 1e-05",
		},
		{
			Schedule{Name: Plateau, Factor: 0.5, Patience: 3}, 300,
			"plateau, times 0.5 after 3 evaluations without a lower loss",
		},
		{
			Schedule{Name: Plateau, Factor: 0.5, Patience: 1}, 300,
			"plateau, times 0.5 after 1 evaluation without a lower loss",
		},
	} {
		if got := c.s.Until(c.last); got != c.want {
			t.Errorf("until step %d: got %q, want %q", c.last, got, c.want)
		}
	}
	if lr := short.LR(short.End(), 0); lr != short.MinLR {
		t.Errorf("the learning rate at the end is %g", lr)
	}
}
