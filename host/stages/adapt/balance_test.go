package adapt

import "testing"

// slow is a measurement of a pipeline that needs so many milliseconds for a batch, and training 20.
func slow(ready float64) Measured { return Measured{Ready: constant(ready), Train: constant(20)} }

func group(name string, workers int, busy, queue float64) Group {
	return Group{Name: name, Workers: workers, Most: 4, Busy: busy / 1000, Queue: queue / 1000}
}

func TestBalance(t *testing.T) {
	decode, stage, other := group("decode", 2, 15, 0), group("stage", 1, 60, 200), group("other", 1, 2, 1)
	idleStage, calm := stage, stage
	idleStage.Fixed, calm.Queue = true, 0.005
	busy := group("decode", 2, 50, 3)
	fullCores := slow(60)
	fullCores.Cores = 0.95
	for _, tt := range []struct {
		name   string
		total  int
		groups []Group
		m      Measured
		want   *Move
	}{
		{"from the decoders, which have time", 4, []Group{decode, stage, other}, slow(60), &Move{To: 1, From: 0}},
		{"from none while there are cores", 5, []Group{decode, stage, other}, slow(60), &Move{To: 1, From: -1}},
		{"training limits the run", 9, []Group{decode, stage, other}, slow(20), nil},
		{"no batch queues", 9, []Group{decode, calm, other}, slow(60), nil},
		{"its number cannot change", 9, []Group{decode, idleStage, other}, slow(60), nil},
		{"the decoders are busy", 4, []Group{busy, stage, other}, slow(60), nil},
		{"there are enough", 9, []Group{decode, group("stage", 4, 60, 200), other}, slow(60), nil},
		{"to the decoders", 4, []Group{group("decode", 2, 90, 70), group("stage", 2, 5, 0)}, slow(45), &Move{From: 1}},
		{"the run takes all cores", 9, []Group{decode, stage, other}, fullCores, nil},
		{"too few times", 9, []Group{decode, stage, other}, Measured{Train: constant(20)}, nil},
	} {
		b := Balance{Total: tt.total}
		got := b.Next(tt.groups, tt.m)
		switch {
		case (got == nil) != (tt.want == nil):
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		case got != nil && (got.To != tt.want.To || got.From != tt.want.From || got.Why == ""):
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestBalanceTakesBack: a worker that does not help goes back, once.
func TestBalanceTakesBack(t *testing.T) {
	groups := []Group{group("decode", 2, 15, 0), group("stage", 1, 60, 200)}
	for _, after := range []float64{30, 58} {
		b := Balance{Total: 3}
		if move := b.Next(groups, slow(60)); move == nil || move.To != 1 {
			t.Fatalf("%+v", move)
		}
		moved := []Group{group("decode", 1, 15, 0), group("stage", 2, 60, 200)}
		back := b.Next(moved, slow(after))
		if helped := after < 50; helped != (back == nil) || back != nil && (back.To != 0 || back.From != 1) {
			t.Errorf("%g ms after 60: %+v", after, back)
		}
		if again := b.Next(groups, slow(60)); (again != nil) != (back == nil) {
			t.Errorf("again after %g ms: %+v", after, again)
		}
	}
	for busy, want := range map[float64]bool{60: false, 100: false, 118: true} { // with two workers on the same cores
		b := Balance{Total: 9}
		b.Next(groups, slow(60))
		moved := []Group{groups[0], group("stage", 2, busy, 200)}
		if back := b.Next(moved, slow(40)); (back != nil && back.From == 1) != want {
			t.Errorf("each of two workers takes %g ms, one took 60: %+v", busy, back)
		}
	}
	b := Balance{Total: 9}
	b.Next(groups, slow(60))
	if back := b.Next(groups, slow(60)); back == nil || back.To != -1 || back.From != 1 {
		t.Errorf("a worker that no group gave: %+v", back)
	}
}
