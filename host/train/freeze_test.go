package train

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Without momentum and clipping an update depends on no other parameter.
var plainSGD = manifest.Optimizer{Name: "sgd", LR: 0.1, WeightDecay: 0.02}

// afterSteps trains pico on its golden run's first batch and returns its weights by name.
func afterSteps(
	t *testing.T, d Device, policy ortgraphs.Policy, accumulating bool, steps int,
) (map[string][]byte, *Model, *Optimizer) {
	t.Helper()
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	arena := ortgraphs.NewArena(b.Manifest.Parameters, policy)
	m, err := NewModel(
		ModelConfig{Bundle: b, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: 1, Threads: 1, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	o := newOptimizer(t, m, plainSGD, accumulating)
	if _, err := o.Prepare(); err != nil {
		t.Fatal(err)
	}
	g.fill(t, g.Steps[0], &layouts[0], input(t, m))
	for range steps {
		trainOn(t, m, 0, g.Seed)
		if err := o.Accumulate(true); err != nil {
			t.Fatal(err)
		}
		if _, updated := step(t, m, o, plainSGD.LR); !updated {
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

// TestFreezeChangesNoOtherBit trains with half of the parameters frozen: those keep their bits, and the first step
// gives the others the bits that training all gives them. Nothing is kept for the frozen ones.
func TestFreezeChangesNoOtherBit(t *testing.T) {
	parameters := open(t, pico).Manifest.Parameters
	policy, size := ortgraphs.Policy{Frozen: map[string]bool{}}, 0
	for i, p := range parameters {
		if policy.Frozen[p.Name] = i%2 == 0; i%2 != 0 {
			size += (p.Elements() + 63) / 64 * 256 // aligned
		}
	}
	for name, c := range map[string]struct {
		gpu, accumulating bool
		vectors           int // momentum, accumulated gradients
	}{"cpu": {vectors: 1}, "cpu, accumulating": {accumulating: true, vectors: 2}, "fake GPU": {gpu: true, vectors: 1}} {
		t.Run(name, func(t *testing.T) {
			var d Device
			if c.gpu {
				d, _ = fakeDevice(t)
			}
			initial, _, _ := afterSteps(t, d, ortgraphs.Policy{}, c.accumulating, 0)
			all, whole, _ := afterSteps(t, d, ortgraphs.Policy{}, c.accumulating, 1)
			got, m, o := afterSteps(t, d, policy, c.accumulating, 1)
			later, _, _ := afterSteps(t, d, policy, c.accumulating, 2)
			for _, p := range parameters {
				want := all[p.Name]
				if policy.Frozen[p.Name] {
					want = initial[p.Name]
				}
				if !bytes.Equal(got[p.Name], want) {
					t.Errorf("%s (frozen: %v) has other bits", p.Name, policy.Frozen[p.Name])
				}
				if still := bytes.Equal(later[p.Name], got[p.Name]); still != policy.Frozen[p.Name] {
					t.Errorf("%s (frozen: %v) keeps its bits in the second step: %v", p.Name, policy.Frozen[p.Name],
						still)
				}
			}
			if n := len(parameters) / 2; len(o.Moments()) != n || len(gradients(t, m)) != n {
				t.Errorf("%d moments and %d gradients of %d trained parameters", len(o.Moments()), len(gradients(t, m)),
					n)
			}
			if _, grads, _ := m.Bytes(); grads != size || o.Bytes() != c.vectors*size {
				t.Errorf("gradients of %d and state of %d bytes, want %d and %d", grads, o.Bytes(), size,
					c.vectors*size)
			}
			part, _ := m.Programs()
			if all, _ := whole.Programs(); part[0].Nodes >= all[0].Nodes {
				t.Errorf("the graph has %d nodes, and %d when all are trained", part[0].Nodes, all[0].Nodes)
			}
		})
	}
}

// TestRestoreVersion1 gives model and optimizer a checkpoint of a run of pico that a program before version 2 saved.
func TestRestoreVersion1(t *testing.T) {
	m, g, _, _ := batchOf(t, pico, "pico", 1)
	o := newOptimizer(t, m, g.Optimizer, false)
	c, err := checkpoint.Load("checkpoint/testdata/version1/pico/step-000002")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := bytes.Clone(m.players[0].weights.host)
	if err := errors.Join(m.Pull(), o.Pull(), c.Restore(m.Weights(), o.Moments())); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, m.players[0].weights.host) {
		t.Error("the weights are still those of the bundle")
	}
	trainOn(t, m, 0, 1)
	if _, updated := step(t, m, o, 0.01); !updated {
		t.Error("no update")
	}
}
