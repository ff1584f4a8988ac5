package train

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSGDByHand: PyTorch's formula on f64, one element at a time. The first step's buffer is the gradient itself.
func TestSGDByHand(t *testing.T) {
	const lr, momentum, decay = 0.1, 0.9, 0.02
	m, _, _, _ := batchOf(t, pico, "pico", 1)
	o := newOptimizer(t, m, manifest.Optimizer{Name: "sgd", LR: lr, Momentum: momentum, WeightDecay: decay}, false)
	type element struct{ weight, buffer, decay float64 }
	track := map[string]*element{} // the first element of every parameter
	for i, w := range m.Weights() {
		e := &element{weight: float64(floats(w.Data[:4])[0])}
		if m.players[0].params[i].Decay {
			e.decay = decay
		}
		track[w.Name] = e
	}
	for range 3 {
		trainOn(t, m, 0, -1)
		for _, g := range gradients(t, m) {
			name := strings.TrimPrefix(g.Name, "grad.")
			e := track[name]
			e.buffer = momentum*e.buffer + float64(floats(g.Data[:4])[0]) + e.decay*e.weight
			e.weight -= lr * e.buffer
		}
		if _, updated := step(t, m, o, lr); !updated {
			t.Fatal("no update")
		}
	}
	near := func(what string, got float32, want float64) {
		if math.Abs(float64(got)-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	if err := errors.Join(m.Pull(), o.Pull()); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Weights() {
		near(w.Name, floats(w.Data[:4])[0], track[w.Name].weight)
	}
	for _, s := range o.Moments() {
		name, ok := strings.CutPrefix(s.Name, "momentum_buffer.")
		if !ok {
			t.Fatalf("state %s", s.Name)
		}
		near(s.Name, floats(s.Data[:4])[0], track[name].buffer)
	}
}

func TestOptimizerState(t *testing.T) {
	for name, kinds := range map[string][]string{"adamw": {"exp_avg", "exp_avg_sq"}, "sgd": {"momentum_buffer"}} {
		m, _, _, _ := batchOf(t, pico, "pico", 1)
		o := newOptimizer(t, m, manifest.Optimizer{Name: name, Eps: 1e-8}, false)
		var want []string
		for _, kind := range kinds {
			for _, p := range m.players[0].params {
				want = append(want, kind+"."+p.Name)
			}
		}
		if err := o.Pull(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range o.Moments() {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s keeps %v, want %v", name, got, want)
		}
		if want := m.players[0].arena.Memory(
			manifest.Optimizer{Name: name}, false, false,
		).Moments; o.Bytes() != want || want != len(kinds)*m.players[0].weights.size {
			t.Errorf("%s has %d bytes, want %d", name, o.Bytes(), want)
		}
	}
	m, _, _, _ := batchOf(t, pico, "pico", 1)
	_, err := NewOptimizer(m, 0, manifest.Optimizer{Name: "norm"}, false, 1)
	if err == nil || !strings.Contains(err.Error(), "adafactor, adamw, lion, muon, sgd") {
		t.Errorf("got %v", err)
	}
}
