//go:build cuda

package train

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// withoutKernel makes an optimizer that runs its graph.
func withoutKernel(m *Model, p manifest.Optimizer) (*Optimizer, error) {
	whole := rules[p.Name]
	defer func() { rules[p.Name] = whole }()
	graph := whole
	graph.fusion = nil
	rules[p.Name] = graph
	return NewOptimizer(m, p, false, 2)
}

// TestFusedChangesNoBit trains with the kernel and with the graph, on the GPU.
func TestFusedChangesNoBit(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	var weights [2][]byte
	for i, make := range []func(*Model, manifest.Optimizer) (*Optimizer, error){
		withoutKernel, func(m *Model, p manifest.Optimizer) (*Optimizer, error) { return NewOptimizer(m, p, false, 2) },
	} {
		m, err := NewModel(ModelConfig{Bundle: b, Layouts: layouts, Slots: 1, Threads: 1, Device: device(t)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := make(m, g.Optimizer)
		if err != nil {
			t.Fatal(err)
		}
		if fused, fault := o.Fused(); fused != (i == 1) {
			t.Fatalf("fused %v: %v", fused, fault)
		}
		for _, s := range g.Steps[:10] {
			bucket := index[s.shape()]
			g.fill(t, s, &layouts[bucket], input(t, m))
			trainOn(t, m, bucket, g.Seed)
			if _, updated := step(t, m, o, g.Optimizer.LR); !updated {
				t.Fatal("no update")
			}
		}
		if err := errors.Join(m.Pull(), o.Pull()); err != nil {
			t.Fatal(err)
		}
		for _, v := range append([]block{m.weights}, o.state...) {
			weights[i] = append(weights[i], v.host...)
		}
		if err := errors.Join(o.Close(), m.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(weights[0], weights[1]) {
		t.Error("other weights or moments")
	}
}

// BenchmarkUpdate is an update of 66 M parameters, the gradient's norm included.
func BenchmarkUpdate(b *testing.B) {
	p := manifest.Optimizer{Name: "adamw", LR: 1e-4, Betas: [2]float64{0.9, 0.98}, Eps: 1e-8, WeightDecay: 0.01, GradClip: 1}
	const n = 66 << 20
	for _, fused := range []bool{false, true} {
		b.Run(fmt.Sprintf("fused=%v", fused), func(b *testing.B) {
			m := &Model{memory: newMemory(device(b)), arena: ortgraphs.Arena{Len: n, Decayed: ortgraphs.Range{End: n}, NotDecayed: ortgraphs.Range{Start: n, End: n}}}
			defer m.Close()
			m.in, m.out = m.words(1), m.words(2)
			m.loss, m.weight = newWord[float32](&m.memory, m.out, manifest.F32), newWord[float32](&m.memory, m.out, manifest.F32)
			m.weights, m.grads = m.block(4*n), m.block(4*n)
			*m.weight.value = 1
			if m.err != nil {
				b.Fatal(m.err)
			}
			o, err := NewOptimizer(m, p, false, 2)
			if !fused {
				o.Close()
				o, err = withoutKernel(m, p)
			}
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close()
			if err := m.send(m.out); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := errors.Join(o.Step(1e-4), m.Drain()); err != nil {
					b.Fatal(err)
				}
				if _, updated := o.Outcome(); !updated {
					b.Fatal("no update")
				}
			}
		})
	}
}
