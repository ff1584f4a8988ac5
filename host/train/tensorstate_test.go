package train

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
)

// goldenOn opens the model and the optimizer of a golden run of pico on a device.
func goldenOn(t *testing.T, d Device, name string, policy ortgraphs.Policy) (*Model, *Optimizer, func(steps int)) {
	t.Helper()
	g, b := readGolden(t, "pico."+name+".json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	policy.Groups = grouped(g.Optimizer.Groups)
	arena := ortgraphs.NewArena(b.Manifest.Parameters, policy)
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: 1, Threads: 1, Device: d,
		CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	o := newOptimizer(t, m, g.Optimizer, false)
	if _, err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	if p, err := o.Prepare(); err != nil || p.Fault != nil || (p.Graphs > 0) != d.onGPU() {
		t.Fatalf("prepared the optimizer %+v, %v", p, err)
	}
	at := 0
	return m, o, func(steps int) {
		for range steps {
			want := g.Steps[at]
			at++
			bucket := index[want.shape()]
			g.fill(t, want, &layouts[bucket], input(t, m))
			trainOn(t, m, bucket, g.Seed)
			if _, updated := step(t, m, o, g.Optimizer.LR); !updated {
				t.Fatalf("step %d: no update", at)
			}
		}
		if err := errors.Join(m.Pull(), o.Pull()); err != nil {
			t.Fatal(err)
		}
	}
}

// bits are the weights and moments of a run.
func bits(m *Model, o *Optimizer) (all []byte) {
	for _, x := range slices.Concat(m.Weights(), o.Moments()) {
		all = append(append(all, x.Name...), x.Data...)
	}
	return all
}

// TestOptimizersOnTheDevice trains with Lion, Muon, Adafactor, and AdamW in parameter groups on a fake GPU and on the
// CPU: no bit differs, nor in a run that a checkpoint interrupts. Half of the parameters are frozen.
func TestOptimizersOnTheDevice(t *testing.T) {
	half := ortgraphs.Policy{Frozen: map[string]bool{}}
	for i, p := range open(t, pico).Manifest.Parameters {
		half.Frozen[p.Name] = i%2 == 0
	}
	for _, name := range []string{"lion", "muon", "adafactor", "groups"} {
		t.Run(name, func(t *testing.T) {
			m, o, run := goldenOn(t, Device{}, name, half)
			run(3)
			dir := t.TempDir()
			if _, err := checkpoint.NewStore(dir).Save(
				t.Context(), checkpoint.State{Step: 3}, m.Weights(), o.Moments(),
			); err != nil {
				t.Fatal(err)
			}
			run(3)
			want := bits(m, o)
			if m.players[0].arena.OptimizerStateBytes(o.params) != o.Bytes() {
				t.Errorf("the state has %d bytes, %d were computed", o.Bytes(),
					m.players[0].arena.OptimizerStateBytes(o.params))
			}

			d, _ := fakeWith(t, fakeKernels()) // the kernel of AdamW
			gm, gpu, onGPU := goldenOn(t, d, name, half)
			onGPU(6)
			if !bytes.Equal(bits(gm, gpu), want) {
				t.Error("the device gives other bits")
			}

			m2, o2, again := goldenOn(t, Device{}, name, half)
			c, _, err := checkpoint.NewStore(dir).Latest()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			again(3) // the batches of the run; what they trained is overwritten
			if err := errors.Join(c.Restore(m2.Weights(), o2.Moments()), m2.Push(), o2.Push()); err != nil {
				t.Fatal(err)
			}
			o2.Steps = 3
			again(3)
			if !bytes.Equal(bits(m2, o2), want) {
				t.Error("the resumed run has other bits")
			}
		})
	}
}

// TestMixedTensors: graphs over single parameters write the bf16 copies of the weights, on the CPU and on a fake GPU.
func TestMixedTensors(t *testing.T) {
	b := bundletest.Mixed(t, pico, "mel_head.weight")
	for _, name := range []string{"muon", "adafactor"} {
		spec := readGolden(t, "pico."+name+".json").Optimizer
		train := func(d Device, accumulating bool) map[string][]byte {
			m, g, index := newMixed(t, b, d)
			o := newOptimizer(t, m, spec, accumulating)
			run(t, m, o, g, m.layouts, index, accumulating, 0, 4)
			out := byName(t, m, o)
			if err := m.pull(&m.players[0].copies.block); err != nil {
				t.Fatal(err)
			}
			for i, w := range m.Weights() {
				at, ok := m.players[0].arena.Parameter(ortgraphs.Copies, i)
				if !ok {
					continue
				}
				rounded := make([]byte, at.Bytes())
				narrow(rounded, floats(w.Data))
				if !bytes.Equal(rounded, m.players[0].copies.host[at.Offset:at.Offset+at.Bytes()]) {
					t.Errorf("%s: the copy of %s is not it, rounded", name, w.Name)
				}
			}
			return out
		}
		for _, accumulating := range []bool{false, true} {
			d, _ := fakeDevice(t)
			same(t, name, train(d, accumulating), train(Device{}, accumulating))
		}
	}
}
