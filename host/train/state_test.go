package train

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// stateful opens pico with state on a device, with its golden run's first batch in its slot.
func stateful(t *testing.T, d Device, slots int) (*Model, golden, []ring.Layout) {
	t.Helper()
	g, b := readGolden(t, "pico.json"), bundletest.Stateful(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: slots, Threads: 1, Device: d, CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	g.fill(t, g.Steps[0], &layouts[0], input(t, m))
	return m, g, layouts
}

// stateOf returns copies of the mean and the count that a checkpoint would have.
func stateOf(t *testing.T, m *Model) (mean []float32, count float32) {
	t.Helper()
	if err := m.Pull(); err != nil {
		t.Fatal(err)
	}
	all := m.Weights()
	all = all[len(all)-2:]
	if all[0].Name != bundletest.StateMean || all[1].Name != bundletest.StateCount {
		t.Fatalf("the last weights are %s and %s", all[0].Name, all[1].Name)
	}
	return floats(all[0].Data), floats(all[1].Data)[0]
}

// TestStateByHand: a batch begins with what the batch before it left, a window ends with what its last batch left, and
// a window that is skipped leaves what was before it. Trial runs and evaluations change nothing.
func TestStateByHand(t *testing.T) {
	for name, device := range cpuAndGPU {
		for _, micros := range []int{1, 3} {
			t.Run(fmt.Sprint(name, micros), func(t *testing.T) {
				m, g, layouts := stateful(t, device(t), 1)
				o := newOptimizer(t, m, plainSGD, micros > 1)
				_, prepared := m.Prepare()
				_, updates := o.Prepare()
				_, tried := m.Try(0, 0)
				_, _, normed := o.Norm()
				if err := errors.Join(prepared, updates, tried, normed); err != nil {
					t.Fatal(err)
				}
				bands := bandsOf(g.Rows, &layouts[0], input(t, m)) // on the CPU, the trial has left another batch
				want, count := slices.Repeat([]float32{0.5}, 20), float32(0.5)
				for window := range 5 {
					mean, seen := slices.Clone(want), count
					before, _ := stateOf(t, m)
					for micro := range micros {
						trainOn(t, m, 0, int64(window*micros+micro))
						for i := range mean {
							mean[i] += 0.3 * (bands[i] - mean[i])
						}
						seen++
						if window == 2 && micro == 0 {
							spoilGradient(t, m)
						}
						if err := o.Accumulate(micro == 0); err != nil {
							t.Fatal(err)
						}
						if got, _ := stateOf(t, m); !slices.Equal(got, before) {
							t.Fatalf("window %d: the state that is saved changes within it", window)
						}
					}
					_, updated := step(t, m, o, plainSGD.LR)
					if updated == (window == 2) {
						t.Fatalf("window %d: updated %v", window, updated)
					}
					if updated {
						want, count = mean, seen
					}
					load(t, m, 0)
					if _, err := m.Evaluate(0, 0); err != nil {
						t.Fatal(err)
					}
					got, n := stateOf(t, m)
					if !near(got, want) || n != count || !updated && !slices.Equal(got, before) {
						t.Fatalf("after window %d the state is %v of %v batches, want %v of %v", window, got[:3], n,
							want[:3], count)
					}
				}
			})
		}
	}
}

// bandsOf returns the mean over the rows of a batch, without its empty ones, of each band of their spectrograms.
func bandsOf(rows int, layout *ring.Layout, room []byte) (means []float32) {
	lengths, mel := ort.View[int32](layout.View(room, "mel_lengths")),
		ort.View[float32](layout.View(room, "mel_spectrograms"))
	const bands = 20
	frames := len(mel) / rows / bands
	sums, filled := make([]float64, bands), 0
	for row, frame := range slices.Collect(slices.Chunk(mel, frames*bands)) {
		if lengths[row] == 0 {
			continue
		}
		filled++
		for i, v := range frame {
			sums[i%bands] += float64(v)
		}
	}
	for _, sum := range sums {
		means = append(means, float32(sum/float64(frames*filled)))
	}
	return means
}

// near reports whether two vectors differ by rounding.
func near(got, want []float32) bool {
	difference := slices.Clone(got)
	for i := range want {
		difference[i] -= want[i]
	}
	return norm(difference) <= 1e-6*norm(want)
}

// TestStateKeepsItsBits: the end of a step copies state, whatever its bits stand for, such as -0 and NaN.
func TestStateKeepsItsBits(t *testing.T) {
	m, _, _ := stateful(t, Device{}, 1)
	o, s := newOptimizer(t, m, plainSGD, false), &m.players[0].state
	random := rand.New(rand.NewPCG(1, 2))
	for _, finite := range []uint8{1, 0, 1} {
		before := bytes.Clone(s.kept.host)
		for i, bits := 0, ort.View[int32](s.next.host); i < len(bits); i++ {
			if bits[i] = int32(random.Uint32()); i%3 == 0 {
				bits[i] = math.MinInt32 // -0
			}
		}
		*o.finite.value = finite
		if err := o.window.kept.end(o); err != nil {
			t.Fatal(err)
		}
		if finite != 0 {
			before = s.next.host
		}
		if !bytes.Equal(s.kept.host, before) || !bytes.Equal(s.now.host, before) {
			t.Errorf("after a step whose flag is %d, the state has other bits", finite)
		}
	}
}

// TestStateIsEvaluated: an evaluation reads the state, and Push takes over another.
func TestStateIsEvaluated(t *testing.T) {
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) {
			m, _, _ := stateful(t, device(t), 1)
			evaluate := func() float64 {
				load(t, m, 0)
				r, err := m.Evaluate(0, 0)
				if err != nil {
					t.Fatal(err)
				}
				return r.Loss
			}
			before, trained := evaluate(), trainOn(t, m, 0, -1).Loss
			if err := m.Pull(); err != nil {
				t.Fatal(err)
			}
			all := m.Weights()
			ort.View[float32](all[len(all)-2].Data)[0] = 3
			if err := m.Push(); err != nil {
				t.Fatal(err)
			}
			if after := evaluate(); after == before {
				t.Errorf("the loss of an evaluation is %v with any state", after)
			}
			if after := trainOn(t, m, 0, -1).Loss; after == trained {
				t.Errorf("the loss of training is %v with any state", after)
			}
		})
	}
}

// saved is what a checkpoint has.
type saved struct {
	weights, moments map[string][]byte
	steps            int64
	numbers          []float64 // the loss and the metrics of the step, which a checkpoint does not have
}

// TestStateIsSavedAndResumed: in a run of the loop every step leaves what can be saved, on the CPU and one batch ahead
// on a GPU, and a model that begins with what was saved continues with the same bits.
func TestStateIsSavedAndResumed(t *testing.T) {
	for _, micros := range []int{1, 2} {
		d, _ := fakeDevice(t)
		want := runStateful(t, Device{}, micros, micros > 1, nil, 0, nil)
		got := runStateful(t, d, micros, micros > 1, nil, 0, nil)
		resumed := runStateful(t, Device{}, micros, micros > 1, &want[2], 3, nil)
		for i := range want {
			same(t, fmt.Sprintf("%d micro-batches, step %d, ahead: weights", micros, i+1), got[i].weights,
				want[i].weights)
			if i > 2 {
				same(t, fmt.Sprintf("%d micro-batches, step %d, resumed: weights", micros, i+1), resumed[i-3].weights,
					want[i].weights)
				same(t, "moments", resumed[i-3].moments, want[i].moments)
			}
			skipped := i > 0 &&
				bytes.Equal(want[i].weights[bundletest.StateMean], want[i-1].weights[bundletest.StateMean])
			if skipped != (i == 3) {
				t.Errorf("%d micro-batches, step %d: the state stays %v", micros, i+1, skipped)
			}
		}
	}
}

// runStateful trains six steps, or those from a step on, and returns what could be saved after each. A batch of the
// fourth is not finite.
func runStateful(
	t *testing.T, d Device, micros int, accumulating bool, from *saved, first int, ranks Ranks,
) (out []saved) {
	t.Helper()
	m, g, layouts := stateful(t, d, 2)
	o := newOptimizer(t, m, open(t, pico).Manifest.Optimizer, accumulating)
	if ranks != nil {
		if err := o.Share(ranks); err != nil {
			t.Fatal(err)
		}
	}
	f := &twoSlots{T: t, model: m, batches: steps(6, micros)[first*micros:]}
	f.fill = func(p *pipeline.Batch, slot int) {
		room := input(t, m)
		g.fill(t, g.Steps[0], &layouts[0], room)
		mel := ort.View[float32](layouts[0].View(room, "mel_spectrograms"))
		if mel[p.Index] += float32(p.Index); p.Step == 3 && p.Micro == 0 {
			mel[0] = float32(math.NaN())
		}
		if !d.onGPU() {
			copy(m.slots[slot].host, room)
		} else if err := m.Load(slot, 0, room); err != nil {
			t.Fatal(err)
		}
	}
	if from != nil {
		for _, x := range append(m.Weights(), o.Moments()...) {
			copy(x.Data, from.weights[x.Name])
			copy(x.Data, from.moments[x.Name])
		}
		if o.Steps = from.steps; errors.Join(m.Push(), o.Push()) != nil {
			t.Fatal("push")
		}
	}
	if _, err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	if p, err := o.Prepare(); err != nil || p.Fault != nil {
		t.Fatal(p.Fault, err)
	}
	seen := &record{onStep: func(w *event.Step) error {
		if err := errors.Join(m.Pull(), o.Pull()); err != nil {
			return err
		}
		s := saved{map[string][]byte{}, map[string][]byte{}, o.Steps, append([]float64{w.Loss}, w.Metrics...)}
		for _, x := range m.Weights() {
			s.weights[x.Name] = bytes.Clone(x.Data)
		}
		for _, x := range o.Moments() {
			s.moments[x.Name] = bytes.Clone(x.Data)
		}
		out = append(out, s)
		return nil
	}}
	l := &Loop{
		Model: m, Optimizers: Optimizers{o}, Feed: f, Observer: seen,
		Policy: Policy{Schedules: []schedule.Schedule{{Name: "constant", BaseLR: 1e-3}}, MaxSkipped: 2},
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFusedState: kernels that compute the state are proved, too. Of a wrong one only its region runs as exported.
func TestFusedState(t *testing.T) {
	b := bundletest.Stateful(t, pico)
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	for _, faults := range []int{0, 1} {
		compiler := fusedtest.NewCompiler(t)
		compiler.Faults, compiler.Change = faults, func(program string) string {
			return strings.Replace(program, "3.000000119e-01f", "3.100000000e-01f", 1)
		}
		m := fusedModel(t, b, layouts, compiler)
		p, err := m.Prepare()
		if err != nil || p.Forms[0].Fusion == nil {
			t.Fatal(p.Forms, err)
		}
		if len(p.Forms[0].Fusion.Faulty) != faults {
			t.Errorf("with %d wrong kernels of the state, found %q", faults, p.Forms[0].Fusion.Faulty)
		}
		if slices.ContainsFunc(p.Forms[0].Fusion.Unproved, func(name string) bool {
			return strings.HasPrefix(name, ortgraphs.StatePrefix)
		}) {
			t.Errorf("unproved %q", p.Forms[0].Fusion.Unproved)
		}
		if mean, count := stateOf(t, m); mean[0] != 0.5 || count != 0.5 {
			t.Errorf("the proof leaves the state %v, %v", mean[0], count)
		}
	}
}
