package adapt

import (
	"math"
	"testing"
)

// exponential are times of that mean, in milliseconds, as those between the events of a Poisson process.
func exponential(mean float64) Times {
	mean /= 1000
	return Times{N: 256, Mean: mean, Var: mean * mean, Runs: mean * mean}
}

// TestBridgeOfPoissonProcesses: the number of batches between two Poisson processes is exactly that of the queue
// M/M/1/B, whose probability of an empty and of a full buffer is known (Kleinrock, Queueing Systems I, 1975, section
// 3.6). The smaller of both must be about 1 %.
func TestBridgeOfPoissonProcesses(t *testing.T) {
	for _, train := range []float64{12, 15, 18, 19, 21, 22, 25, 30, 40} {
		m := Measured{Ready: exponential(20), Train: exponential(train)}
		b := m.bridge()
		rho := train / 20 // batches that come, by those that are taken
		if rho < 1 {
			rho = 1 / rho // then the end at which the slower one waits is the other one
		}
		empty := (rho - 1) / (math.Pow(rho, float64(b+1)) - 1)
		if empty > 0.011 || empty < 0.003 {
			t.Errorf("training takes %g ms, the pipeline 20 ms: with %d batches, the slower one waits %.4f of the time",
				train, b, empty)
		}
	}
}

// constant are times that do not vary, in milliseconds.
func constant(mean float64) Times { return Times{N: 256, Mean: mean / 1000} }

func TestNeed(t *testing.T) {
	for _, tt := range []struct {
		name         string
		ready, train Times
		work, queue  float64 // ms
		want         int
	}{
		{"nothing varies", constant(10), constant(20), 15, 0, 1 + 1},
		{"nothing varies, equally fast", constant(20), constant(20), 20, 0, 1 + 1},
		{"both vary, equally fast", exponential(20), exponential(20), 20, 0, 1 + 100},
		{"a long way, many at a time", constant(10), constant(20), 190, 0, 10 + 1},
		{"a long way that is too slow for want of slots", constant(60), constant(20), 190, 1, 10 + 1},
		{"a queue: more at a time are not possible", constant(60), constant(20), 190, 100, 4 + 1},
	} {
		m := Measured{Ready: tt.ready, Train: tt.train, Work: tt.work / 1000, Queue: tt.queue / 1000}
		if got := m.Need(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// needs returns a measurement whose Need is n: one batch in preparation, and n - 1 that bridge the variation.
func needs(t *testing.T, n int) Measured {
	t.Helper()
	m := Measured{Ready: constant(15), Train: constant(20), Work: 0.015}
	for n != m.Need() {
		if m.Ready.Runs += 1e-6; m.Ready.Runs > 1 {
			t.Fatalf("no measurement needs %d", n)
		}
	}
	return m
}

// TestDepth: a sequence of decisions, each with the depth that must follow from it.
func TestDepth(t *testing.T) {
	held := func(m Measured) Measured { m.Held = true; return m }
	unknown := Measured{Train: constant(20), Work: 0.055, Held: true}
	few := needs(t, 9)
	few.Ready.N = fewest - 1
	type decision struct {
		name  string
		m     Measured
		times int
		want  int
	}
	for _, tt := range []struct {
		name  string
		depth Depth
		all   []decision
	}{
		{"it grows to what is needed, doubling at most, up to the limit", Depth{Now: 2, Min: 2, Max: 20}, []decision{
			{"too few times", few, 3, 2}, {"first", needs(t, 9), 1, 4}, {"second", needs(t, 9), 1, 8},
			{"a little more", needs(t, 9), 9, 8}, {"more", needs(t, 10), 1, 10}, {"much more", needs(t, 50), 5, 20},
		}},
		{"it shrinks by a quarter when less was enough for long", Depth{Now: 20, Min: 2, Max: 20}, []decision{
			{"not long", needs(t, 10), 7, 20}, {"a need between", needs(t, 18), 1, 20}, {"long", needs(t, 10), 8, 15},
			{"longer", needs(t, 10), 8, 11}, {"enough", needs(t, 10), 90, 11},
		}},
		{"the patience doubles when it had to grow again", Depth{Now: 8, Min: 2, Max: 20}, []decision{
			{"shrinks", needs(t, 4), 8, 6}, {"grows", needs(t, 8), 1, 8}, {"patient", needs(t, 4), 15, 8},
			{"shrinks again", needs(t, 4), 1, 6},
		}},
		{"it does not grow while the pipeline is held back, and shrinks", Depth{Now: 9, Min: 2, Max: 20}, []decision{
			{"need", held(needs(t, 18)), 7, 9}, {"long", held(needs(t, 18)), 1, 6}, {"unknown", unknown, 8, 4},
			{"the pace and one", unknown, 90, 4},
		}},
		{"it grows to the limit if the pipeline limits the run, and stays", Depth{Now: 3, Min: 2, Max: 20}, []decision{
			{"first", slow(30), 1, 6}, {"second", slow(30), 1, 12}, {"third", slow(30), 90, 20},
			{"equally fast", slow(21), 8, 15},
		}},
		{"it stays at its minimum", Depth{Now: 3, Min: 3, Max: 3}, []decision{
			{"less", needs(t, 2), 90, 3}, {"held", held(needs(t, 2)), 90, 3}, {"more", needs(t, 9), 9, 3},
		}},
	} {
		for _, d := range tt.all {
			for range d.times {
				before := tt.depth.Now
				if why := tt.depth.Next(d.m); (why != "") != (tt.depth.Now != before) {
					t.Errorf("%s: %s: %d after %d, because %q", tt.name, d.name, tt.depth.Now, before, why)
				}
			}
			if tt.depth.Now != d.want {
				t.Errorf("%s: %s: %d, want %d", tt.name, d.name, tt.depth.Now, d.want)
			}
		}
	}
}
