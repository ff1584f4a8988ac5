package train

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// optimizers make one that runs its graph, and one that has its kernel.
var optimizers = map[bool]func(*Model, manifest.Optimizer) (*Optimizer, error){
	false: func(m *Model, p manifest.Optimizer) (*Optimizer, error) {
		whole := rules[p.Name]
		defer func() { rules[p.Name] = whole }()
		graph := whole
		graph.kernel = nil
		rules[p.Name] = graph
		return NewOptimizer(m, 0, p, false, 2)
	},
	true: func(m *Model, p manifest.Optimizer) (*Optimizer, error) { return NewOptimizer(m, 0, p, false, 2) },
}

// flatModel makes a model of n weights and no graphs, a quarter of which does not decay.
func flatModel(t testing.TB, n int) *Model {
	t.Helper()
	list := []manifest.Parameter{{Shape: []int{3 * n / 4}, Decay: true}, {Shape: []int{n / 4}}}
	m := &Model{memory: newMemory(device(t)), players: players{{parameters: parameters{arena: ortgraphs.NewArena(list,
		ortgraphs.Policy{})}}}}
	t.Cleanup(func() { m.Close() })
	m.in, m.out = m.words(1), m.words(2)
	m.loss, m.weight = newWord[float32](&m.memory, m.out, manifest.F32),
		newWord[float32](&m.memory, m.out, manifest.F32)
	p := m.players[0]
	p.weights, p.grads = m.vector(p.arena, ortgraphs.Weights), m.vector(p.arena, ortgraphs.Gradients)
	*m.loss.value, *m.weight.value = 1, 1
	if err := errors.Join(m.err, m.send(m.out)); err != nil {
		t.Fatal(err)
	}
	return m
}

var adamw = manifest.Optimizer{
	Name: "adamw", LR: 1e-4, Betas: [2]float64{0.9, 0.98}, Eps: 1e-8, WeightDecay: 0.01, GradClip: 1,
}

// TestUpdateKernelGridStride updates more elements than there are threads.
func TestUpdateKernelGridStride(t *testing.T) {
	needsGPU(t)
	const n = 2 * 4 * kernelThreads * kernelBlocks
	var got [2][]byte
	for i, inKernel := range []bool{false, true} {
		m := flatModel(t, n)
		for k, b := range []*block{&m.players[0].weights.block, &m.players[0].grads.block} {
			if err := m.mirror(b); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(uint64(k), 5))
			for j := range ort.View[float32](b.host) {
				ort.View[float32](b.host)[j] = float32(random.Uint32()>>8)/(1<<24) - 0.5
			}
			if err := m.push(b); err != nil {
				t.Fatal(err)
			}
		}
		o, err := optimizers[inKernel](m, adamw)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		for range 2 {
			if _, updated := step(t, m, o, 1e-3); !updated {
				t.Fatal("no update")
			}
		}
		for _, b := range []*block{&m.players[0].weights.block, &o.state[0].block, &o.state[1].block} {
			if err := m.pull(b); err != nil {
				t.Fatal(err)
			}
			got[i] = append(got[i], b.host...)
		}
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("other weights or moments")
	}
}

// TestUpdateKernelChangesNoBit trains with the kernel and with the graph, on the GPU.
func TestUpdateKernelChangesNoBit(t *testing.T) {
	needsGPU(t)
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	var weights [2][]byte
	for i, inKernel := range []bool{false, true} {
		m, err := NewModel(
			ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: device(t)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := optimizers[inKernel](m, g.Optimizer)
		if err != nil {
			t.Fatal(err)
		}
		if is, fault := o.InKernel(); is != inKernel {
			t.Fatalf("inKernel %v: %v", is, fault)
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
		for _, v := range append([]vector{m.players[0].weights}, o.state...) {
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

// BenchmarkUpdate is an update of 69 M parameters, the gradient's norm included; on a fake driver of few, to see that
// it runs.
func BenchmarkUpdate(b *testing.B) {
	n := 66 << 20
	needsGPU(b)
	if isFake(device(b)) {
		n = 1 << 16
	}
	for _, inKernel := range []bool{false, true} {
		b.Run(fmt.Sprintf("fused=%v", inKernel), func(b *testing.B) {
			m := flatModel(b, n)
			o, err := optimizers[inKernel](m, adamw)
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close()
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
