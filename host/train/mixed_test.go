package train

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// newMixed opens a bundle in bf16, with the layouts of pico's golden run.
func newMixed(t testing.TB, b *ortgraphs.Bundle, d Device, frozen ...string) (*Model, golden, map[string]int) {
	t.Helper()
	policy := b.Policy(manifest.BF16)
	policy.Frozen = map[string]bool{}
	for _, name := range frozen {
		policy.Frozen[name] = true
	}
	g := readGolden(t, "pico.json")
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: []*ortgraphs.Arena{ortgraphs.NewArena(b.Manifest.Parameters, policy)},
		Precision: manifest.BF16, Layouts: layouts, Slots: 1, Threads: 1, Device: d, CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, g, index
}

// byName returns the bytes of tensors, which later steps do not change.
func byName(t testing.TB, m *Model, o *Optimizer) map[string][]byte {
	t.Helper()
	if err := errors.Join(m.Pull(), o.Pull()); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, x := range slices.Concat(m.Weights(), o.Moments()) {
		out[x.Name] = bytes.Clone(x.Data)
	}
	return out
}

// same compares states.
func same(t *testing.T, what string, got, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for name, data := range want {
		if !bytes.Equal(got[name], data) {
			t.Errorf("%s: %s has other bits", what, name)
		}
	}
}

// onCPU opens pico in f32.
func onCPU(t *testing.T, layouts []ring.Layout) *Model {
	t.Helper()
	b := open(t, pico)
	m, err := NewModel(ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestMixedStepByHand: a step in bf16 is one of the f32 graph at rounded weights, whose rounded gradients update the
// f32 masters.
func TestMixedStepByHand(t *testing.T) {
	b := bundletest.Mixed(t, pico, "mel_head.weight") // some gradient of a matrix is f32
	m, g, index := newMixed(t, b, Device{})
	o := newOptimizer(t, m, g.Optimizer, false)
	layouts, _ := shaped(t, b, g.Rows, g.Steps)
	f32 := onCPU(t, layouts)
	state := map[string][2][]float32{}
	for n, s := range g.Steps[:5] {
		bucket := index[s.shape()]
		masters := map[string][]float32{}
		for i, w := range m.Weights() {
			masters[w.Name] = slices.Clone(floats(w.Data))
			copy(ort.View[float32](f32.Weights()[i].Data), rounded(masters[w.Name], len(w.Shape) > 1))
		}
		for _, model := range []*Model{m, f32} {
			g.fill(t, s, &layouts[bucket], input(t, model))
		}
		got, want := trainOn(t, m, bucket, g.Seed), trainOn(t, f32, bucket, g.Seed)
		if got.Loss != want.Loss {
			t.Fatalf("step %d: loss %v, by hand %v", n, got.Loss, want.Loss)
		}
		sum := 0.0
		grads := map[string][]float32{}
		for _, w := range gradients(t, f32) {
			x := rounded(floats(w.Data), len(w.Shape) > 1 && w.Name != "mel_head.weight")
			grads[w.Name] = x
			for _, v := range x {
				sum += float64(v) * float64(v)
			}
		}
		norm, updated := step(t, m, o, g.Optimizer.LR)
		if !updated || math.Abs(norm-math.Sqrt(sum)) > 1e-6*norm {
			t.Fatalf("step %d: updated %v, norm %v, by hand %v", n, updated, norm, math.Sqrt(sum))
		}
		for i, w := range m.Weights() {
			if m.players[0].params[i].Frozen {
				continue
			}
			v, ok := state[w.Name]
			if !ok {
				v = [2][]float32{make([]float32, len(masters[w.Name])), make([]float32, len(masters[w.Name]))}
				state[w.Name] = v
			}
			p := g.Optimizer
			if !m.players[0].params[i].Decay {
				p.WeightDecay = 0
			}
			byHand(masters[w.Name], grads[w.Name], v, p, float32(norm), int64(n+1))
			if !slices.Equal(masters[w.Name], floats(w.Data)) {
				t.Fatalf("step %d: %s is not as by hand", n, w.Name)
			}
			if at, ok := m.players[0].arena.Parameter(ortgraphs.Copies, i); ok {
				rounded := make([]byte, at.Bytes())
				narrow(rounded, masters[w.Name])
				if !bytes.Equal(rounded, m.players[0].copies.host[at.Offset:at.Offset+at.Bytes()]) {
					t.Fatalf("step %d: the copy of %s is not it, rounded", n, w.Name)
				}
			}
		}
	}
}

// rounded returns numbers as bf16 has them, if asked to.
func rounded(x []float32, ask bool) []float32 {
	if !ask {
		return slices.Clone(x)
	}
	bits := make([]byte, 2*len(x))
	narrow(bits, x)
	return widen(bits)
}

// hand holds what byHand names by address: it lies in the program's data, which does not move.
var hand = struct {
	norm, scale float32
	finite      uint8
}{0, 1, 1}

// byHand is AdamW in Go.
func byHand(param, grad []float32, state [2][]float32, p manifest.Optimizer, norm float32, step int64) {
	hand.norm = norm
	address := func(at unsafe.Pointer) uint64 { return uint64(uintptr(at)) }
	arguments := []uint64{
		address(unsafe.Pointer(&param[0])), address(unsafe.Pointer(&grad[0])), address(unsafe.Pointer(&state[0][0])),
		address(unsafe.Pointer(&state[1][0])), uint64(len(param)), address(unsafe.Pointer(&hand.norm)),
		address(unsafe.Pointer(&hand.scale)), address(unsafe.Pointer(&hand.finite)),
	}
	fakeAdamW(forms{}, 0)(adamwNumbers(arguments, p, p.LR, p.WeightDecay, step))
}

// run trains some batches, every other one of which ends a window when gradients are accumulated.
func run(
	t *testing.T, m *Model, o *Optimizer, g golden, layouts []ring.Layout, index map[string]int, accumulating bool,
	from, to int,
) (losses []float64) {
	t.Helper()
	for i, want := range g.Steps[from:to] {
		bucket := index[want.shape()]
		g.fill(t, want, &layouts[bucket], input(t, m))
		losses = append(losses, trainOn(t, m, bucket, g.Seed).Loss)
		if err := o.Accumulate(i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if accumulating && i%2 == 0 {
			continue
		}
		if _, updated := step(t, m, o, g.Optimizer.LR); !updated {
			t.Fatalf("batch %d: no update", i)
		}
	}
	return losses
}

// TestMixedOnADevice trains in bf16 on the CPU and on a fake GPU, by graphs and by kernels: the same bits.
func TestMixedOnADevice(t *testing.T) {
	b := bundletest.Mixed(t, pico, "mel_head.weight")
	for _, accumulating := range []bool{false, true} {
		t.Run(fmt.Sprintf("accumulating %v", accumulating), func(t *testing.T) {
			train := func(d Device, inKernel bool) ([]float64, map[string][]byte) {
				m, g, index := newMixed(t, b, d)
				defer m.Close()
				o := newOptimizer(t, m, g.Optimizer, accumulating)
				defer o.Close()
				if is, fault := o.InKernel(); is != inKernel || inKernel && fault != nil {
					t.Fatalf("inKernel %v, %v", is, fault)
				}
				for _, prepare := range []func() (Prepared, error){m.Prepare, o.Prepare} {
					if p, err := prepare(); err != nil || p.Fault != nil || (p.Graphs > 0) != d.onGPU() {
						t.Fatalf("prepared %+v, %v", p, err)
					}
				}
				return run(t, m, o, g, m.layouts, index, accumulating, 0, 6), byName(t, m, o)
			}
			losses, want := train(Device{}, false)
			for _, kernels := range []map[string]func([]uint64){nil, fakeKernels()} {
				d, _ := fakeWith(t, kernels)
				other, got := train(d, kernels != nil)
				if !slices.Equal(losses, other) {
					t.Errorf("losses %v, want %v", other, losses)
				}
				same(t, fmt.Sprintf("%d kernels", len(kernels)), got, want)
			}
		})
	}
}

// TestMixedResumes: masters and moments are all that a run needs to continue with the same bits.
func TestMixedResumes(t *testing.T) {
	b := bundletest.Mixed(t, pico)
	d, _ := fakeWith(t, fakeKernels())
	m, g, index := newMixed(t, b, d)
	o := newOptimizer(t, m, g.Optimizer, false)
	run(t, m, o, g, m.layouts, index, false, 0, 3)
	saved := byName(t, m, o)
	losses := run(t, m, o, g, m.layouts, index, false, 3, 6)
	want := byName(t, m, o)

	m2, _, _ := newMixed(t, b, d)
	o2 := newOptimizer(t, m2, g.Optimizer, false)
	byName(t, m2, o2) // makes Go's side
	for _, x := range slices.Concat(m2.Weights(), o2.Moments()) {
		copy(x.Data, saved[x.Name])
	}
	o2.Steps = 3
	if err := errors.Join(m2.Push(), o2.Push()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, m2, o2, g, m2.layouts, index, false, 3, 6); !slices.Equal(got, losses) {
		t.Errorf("losses %v, want %v", got, losses)
	}
	same(t, "resumed", byName(t, m2, o2), want)
}

// TestMixedSkips: gradients that are not finite change no bit, of copies either.
func TestMixedSkips(t *testing.T) {
	for _, where := range []manifest.DType{manifest.BF16, manifest.F32} {
		for _, accumulating := range []bool{false, true} {
			d, _ := fakeWith(t, fakeKernels())
			m, g, index := newMixed(t, bundletest.Mixed(t, pico), d)
			o := newOptimizer(t, m, g.Optimizer, accumulating)
			bucket := index[g.Steps[0].shape()]
			g.fill(t, g.Steps[0], &m.layouts[bucket], input(t, m))
			trainOn(t, m, bucket, g.Seed)
			before := byName(t, m, o)
			if err := errors.Join(m.pull(&m.players[0].grads.block), m.pull(&m.players[0].copies.block)); err != nil {
				t.Fatal(err)
			}
			copies := bytes.Clone(m.players[0].copies.host)
			for i := range m.players[0].params {
				if at, ok := m.players[0].arena.Parameter(ortgraphs.Gradients, i); ok && at.DType == where {
					copy(m.players[0].grads.host[at.Offset:], []byte{0xc0, 0x7f, 0xc0, 0x7f}) // NaN in both
					break
				}
			}
			if err := errors.Join(m.push(&m.players[0].grads.block), o.Accumulate(true)); err != nil {
				t.Fatal(err)
			}
			if norm, updated := step(t, m, o, 1); updated || norm == norm {
				t.Errorf("a %s gradient is not finite: updated %v, norm %v", where, updated, norm)
			}
			same(t, string(where), byName(t, m, o), before)
			if err := m.pull(&m.players[0].copies.block); err != nil || !bytes.Equal(m.players[0].copies.host, copies) {
				t.Errorf("a %s gradient is not finite: copies have changed, %v", where, err)
			}
		}
	}
}

// TestMixedMatricesAlone: a run may train nothing but parameters with bf16 gradients.
func TestMixedMatricesAlone(t *testing.T) {
	b := bundletest.Mixed(t, pico)
	var vectors []string
	for _, p := range b.Manifest.Parameters {
		if len(p.Shape) < 2 {
			vectors = append(vectors, p.Name)
		}
	}
	for _, accumulating := range []bool{false, true} {
		m, g, index := newMixed(t, b, Device{}, vectors...)
		o := newOptimizer(t, m, g.Optimizer, accumulating)
		first := byName(t, m, o)
		losses := run(t, m, o, g, m.layouts, index, accumulating, 0, 4)
		if last := losses[len(losses)-1]; math.IsNaN(last) {
			t.Errorf("losses %v", losses)
		}
		for name, data := range byName(t, m, o) {
			if frozen := slices.Contains(vectors, name); frozen != bytes.Equal(data, first[name]) {
				t.Errorf("%s: frozen %v, has changed %v", name, frozen, !bytes.Equal(data, first[name]))
			}
		}
	}
}

// TestMixedEvaluation: the eval graph reads the masters; without one the training graph reads the copies, without its
// backward pass.
func TestMixedEvaluation(t *testing.T) {
	with, without := bundletest.Mixed(t, pico), bundletest.WithoutEval(t, bundletest.Mixed(t, pico).Dir)
	g := readGolden(t, "pico.json")
	evaluate := func(m *Model) Result {
		g.fill(t, g.Steps[0], &m.layouts[0], input(t, m))
		load(t, m, 0)
		r, err := m.Evaluate(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, _, _ := newMixed(t, with, Device{})
	b, _, _ := newMixed(t, without, Device{})
	f32 := onCPU(t, a.layouts)
	if got, want := evaluate(a), evaluate(f32); got.Loss != want.Loss {
		t.Errorf("with an eval graph: loss %v, in f32 %v", got.Loss, want.Loss)
	}
	rounded, trained := evaluate(b), trainOn(t, b, 0, -1)
	if rounded.Loss != trained.Loss {
		t.Errorf("without an eval graph: loss %v, training without dropout %v", rounded.Loss, trained.Loss)
	}
	training, evaluation := b.Programs()
	if evaluation.Precision != "bf16" || training[0].Precision != "bf16" ||
		!strings.HasSuffix(evaluation.File, ".bf16.onnx") || evaluation.Nodes >= training[0].Nodes {
		t.Errorf("training by %+v, evaluation by %+v", training, evaluation)
	}
}
