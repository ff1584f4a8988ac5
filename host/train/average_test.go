package train

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// averaging returns a model of pico that averages its weights, with its golden run's first batch in its slot.
func averaging(t *testing.T, d Device, policy ortgraphs.Policy, decay float64) (*Model, *Optimizer) {
	t.Helper()
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: []*ortgraphs.Arena{ortgraphs.NewArena(b.Manifest.Parameters, policy)}, Layouts: layouts,
		Slots: 1, Threads: 1, Device: d, Average: decay,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	o := newOptimizer(t, m, plainSGD, false)
	if _, err := o.Prepare(); err != nil {
		t.Fatal(err)
	}
	g.fill(t, g.Steps[0], &layouts[0], input(t, m))
	return m, o
}

// cpuAndGPU open the CPU, and a GPU in pure Go, whose thread is the test's.
var cpuAndGPU = map[string]func(*testing.T) Device{
	"CPU": func(*testing.T) Device { return Device{} },
	"GPU": func(t *testing.T) Device { d, _ := fakeDevice(t); return d },
}

// TestAverageByHand: the graph's average is the formula's, one f32 operation after the other, whatever is frozen. A
// step that is skipped changes nothing of it.
func TestAverageByHand(t *testing.T) {
	policy := ortgraphs.Policy{Frozen: map[string]bool{}}
	for i, p := range open(t, pico).Manifest.Parameters {
		policy.Frozen[p.Name] = i%3 == 0
	}
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) {
			m, o := averaging(t, device(t), policy, 0.5)
			want := map[string][]float32{}
			for _, a := range m.Average() {
				want[a.Name] = floats(a.Data)
			}
			if len(want) == 0 || len(want) == len(m.Weights()) {
				t.Fatalf("%d averages of %d weights", len(want), len(m.Weights()))
			}
			for n := range 14 {
				trainOn(t, m, 0, 3)
				lr := plainSGD.LR
				if n == 5 {
					spoilGradient(t, m)
				}
				_, updated := step(t, m, o, lr)
				if updated == (n == 5) {
					t.Fatalf("step %d: updated %v", n, updated)
				}
				if err := m.Pull(); err != nil {
					t.Fatal(err)
				}
				if !updated {
					continue
				}
				count := float64(o.Averaged)
				rate := float32(1 - min(0.5, (1+count)/(10+count)))
				for _, w := range m.Weights() {
					for i, x := range floats(w.Data) {
						if a := want[w.Name]; a != nil {
							part := (x - a[i]) * rate
							a[i] += part
						}
					}
				}
			}
			if o.Averaged != 13 {
				t.Errorf("%d updates", o.Averaged)
			}
			for _, a := range m.Average() {
				for i, x := range floats(a.Data) {
					if x != want[a.Name][i] {
						t.Fatalf("%s[%d] is %v, want %v", a.Name, i, x, want[a.Name][i])
					}
				}
			}
		})
	}
}

// spoilGradient makes a gradient not finite.
func spoilGradient(t *testing.T, m *Model) {
	t.Helper()
	ort.View[float32](gradients(t, m)[0].Data)[0] = float32(math.NaN())
	if err := m.push(&m.players[0].grads.block); err != nil {
		t.Fatal(err)
	}
}

// TestAverageIsEvaluated: an evaluation reads the average, training the weights, and the average changes no bit of the
// weights.
func TestAverageIsEvaluated(t *testing.T) {
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) {
			d := device(t)
			m, o := averaging(t, d, ortgraphs.Policy{}, 0.9)
			plain, without := averaging(t, d, ortgraphs.Policy{}, 0)
			for range 3 {
				for _, x := range []struct {
					*Model
					*Optimizer
				}{{m, o}, {plain, without}} {
					trainOn(t, x.Model, 0, 3)
					step(t, x.Model, x.Optimizer, plainSGD.LR)
				}
			}
			if err := errors.Join(m.Pull(), plain.Pull()); err != nil {
				t.Fatal(err)
			}
			for i, w := range m.Weights() {
				if !bytes.Equal(w.Data, plain.Weights()[i].Data) {
					t.Fatalf("%s differs with an average", w.Name)
				}
			}
			load(t, m, 0)
			load(t, plain, 0)
			averaged, err := m.Evaluate(0, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := averaged.Loss
			current, err := plain.Evaluate(0, 0)
			if err != nil || current.Loss == got {
				t.Fatalf("the loss of the average is %v, that of the weights %v, %v", got, current.Loss, err)
			}
			// The weights, where the average has them, have its loss.
			for i, a := range m.Average() {
				copy(plain.Weights()[i].Data, a.Data)
			}
			if err := plain.Push(); err != nil {
				t.Fatal(err)
			}
			if r, err := plain.Evaluate(0, 0); err != nil || r.Loss != got {
				t.Errorf("with the average as weights the loss is %v, want %v, %v", r.Loss, got, err)
			}
		})
	}
}

// TestNoAverage: without one there is no memory for it and no tensor.
func TestNoAverage(t *testing.T) {
	m, o := averaging(t, Device{}, ortgraphs.Policy{}, 0)
	if m.Average() != nil || m.players[0].averages.size != 0 || len(o.average.updates) > 0 {
		t.Errorf("%d averages of %d bytes", len(m.Average()), m.players[0].averages.size)
	}
	got := m.players[0].arena.Memory(plainSGD, false, true).Average
	if got != m.players[0].arena.Bytes(ortgraphs.State) || got%manifest.F32.Size() != 0 {
		t.Errorf("an average takes %d bytes", got)
	}
}
