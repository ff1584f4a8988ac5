package train

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestFreezeChangesNoOtherBit trains two steps with half of the parameters frozen: those keep their bits, and the first
// step gives the others the bits that training all gives them. Nothing is kept for the frozen ones.
func TestFreezeChangesNoOtherBit(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	frozen := map[string]bool{}
	for i, p := range b.Manifest.Parameters {
		frozen[p.Name] = i%2 == 0
	}
	// Without momentum and clipping an update depends on no other parameter.
	sgd := manifest.Optimizer{Name: "sgd", LR: 0.1, WeightDecay: 0.02}
	for name, c := range map[string]struct{ gpu, accumulating bool }{"cpu": {}, "cpu, accumulating": {accumulating: true}, "fake GPU": {gpu: true}} {
		t.Run(name, func(t *testing.T) {
			var d Device
			if c.gpu {
				d, _ = fakeDevice(t)
			}
			after := func(policy ortgraphs.Policy, steps int) (map[string][]byte, *Model, *Optimizer) {
				arena := ortgraphs.NewArena(b.Manifest.Parameters, policy)
				m, err := NewModel(ModelConfig{Bundle: b, Arena: arena, Layouts: layouts, Slots: 1, Threads: 1, Device: d})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { m.Close() })
				o := newOptimizer(t, m, sgd, c.accumulating)
				if _, err := o.Prepare(); err != nil {
					t.Fatal(err)
				}
				g.fill(t, g.Steps[0], &layouts[0], input(t, m))
				for range steps {
					trainOn(t, m, 0, g.Seed)
					if err := o.Accumulate(true); err != nil {
						t.Fatal(err)
					}
					if _, updated := step(t, m, o, sgd.LR); !updated {
						t.Fatal("no update")
					}
				}
				if err := errors.Join(m.Pull(), o.Pull()); err != nil {
					t.Fatal(err)
				}
				weights := map[string][]byte{}
				for _, w := range m.Weights() {
					weights[w.Name] = bytes.Clone(w.Data)
				}
				return weights, m, o
			}
			initial, _, _ := after(ortgraphs.Policy{}, 0)
			all, training, _ := after(ortgraphs.Policy{}, 1)
			for steps := 1; steps <= 2; steps++ {
				got, m, o := after(ortgraphs.Policy{Frozen: frozen}, steps)
				trained := 0
				for _, p := range b.Manifest.Parameters {
					switch {
					case frozen[p.Name] && !bytes.Equal(got[p.Name], initial[p.Name]):
						t.Errorf("step %d: %s is frozen and changed", steps, p.Name)
					case !frozen[p.Name] && bytes.Equal(got[p.Name], initial[p.Name]):
						t.Errorf("step %d: %s is trained and did not change", steps, p.Name)
					case !frozen[p.Name] && steps == 1 && !bytes.Equal(got[p.Name], all[p.Name]):
						t.Errorf("%s differs from what it is when all are trained", p.Name)
					}
					if !frozen[p.Name] {
						trained += (p.Elements() + 63) / 64 * 256 // aligned
					}
				}
				part, _ := m.Programs()
				if whole, _ := training.Programs(); part.Nodes >= whole.Nodes {
					t.Errorf("the graph has %d nodes, and %d when all are trained", part.Nodes, whole.Nodes)
				}
				if n := len(b.Manifest.Parameters) / 2; len(o.Moments()) != n || len(gradients(t, m)) != n {
					t.Errorf("%d moments and %d gradients of %d trained parameters", len(o.Moments()), len(gradients(t, m)), n)
				}
				vectors := 1 // momentum
				if c.accumulating {
					vectors++
				}
				if _, grads, _ := m.Bytes(); grads != trained || o.Bytes() != vectors*trained {
					t.Errorf("gradients of %d and state of %d bytes, want %d and %d", grads, o.Bytes(), trained, vectors*trained)
				}
			}
		})
	}
}

// TestRestoreVersion1 gives model and optimizer a checkpoint of a run of pico that a program before version 2 saved.
func TestRestoreVersion1(t *testing.T) {
	m, g, _, _ := batchOf(t, pico, "pico", 1)
	o := newOptimizer(t, m, g.Optimizer, false)
	c, err := checkpoint.Load("../checkpoint/testdata/version1/pico/step-000002")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := bytes.Clone(m.weights.host)
	if err := errors.Join(m.Pull(), o.Pull(), c.Restore(m.Weights(), o.Moments())); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, m.weights.host) {
		t.Error("the weights are still those of the bundle")
	}
	trainOn(t, m, 0, 1)
	if _, updated := step(t, m, o, 0.01); !updated {
		t.Error("no update")
	}
}
