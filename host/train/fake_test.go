package train

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// fakeDevice is a GPU in pure Go, which reports every misuse. The CPU computes with its memory. It has no kernels.
func fakeDevice(t testing.TB) (Device, *gputest.Context) { return fakeWith(t, nil) }

// fakeWith is one that has.
func fakeWith(t testing.TB, kernels map[string]func([]uint64)) (Device, *gputest.Context) {
	t.Helper()
	runtime.LockOSThread() // for the test's goroutine, which ends with it
	card := gputest.New(gputest.Config{Misuse: func(err error) { t.Error(err) }, Kernels: kernels})
	d := Device{Context: card}
	if err := card.Bind(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*gpu.Stream{&d.Compute, &d.Transfer} {
		var err error
		if *s, err = card.NewStream(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { d.Compute.Close(); d.Transfer.Close(); card.Close() }) // reports what is still open
	return d, card
}

// picoOn opens pico on a device, with one slot and the layouts of its golden run's first batch.
func picoOn(t *testing.T, d Device) (*Model, golden, []ring.Layout) {
	t.Helper()
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, g, layouts
}

// TestDeviceChangesNoBit trains on a fake GPU and on the CPU: every step of the way from ring to weights and back is
// there, and only the provider is the same. An update as a kernel changes no bit either.
func TestDeviceChangesNoBit(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	type state struct {
		losses           []float64
		weights, moments []byte
	}
	half := map[string]bool{}
	for i, p := range b.Manifest.Parameters {
		half[p.Name] = i%2 == 0
	}
	train := func(d Device, accumulating bool, frozen map[string]bool) (s state) {
		arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{Frozen: frozen})
		m, err := NewModel(ModelConfig{
			Bundle: b, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: 1, Threads: 1, Device: d,
			CUDAGraphs: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		o := newOptimizer(t, m, g.Optimizer, accumulating)
		p, err := m.Prepare()
		if err != nil || p.Fault != nil || (p.Graphs == len(layouts)) != d.onGPU() {
			t.Fatalf("prepared %+v, %v", p, err)
		}
		if p, err := o.Prepare(); err != nil || p.Fault != nil || (p.Graphs > 0) != d.onGPU() {
			t.Fatalf("prepared the optimizer %+v, %v", p, err)
		}
		for i, want := range g.Steps[:6] {
			bucket := index[want.shape()]
			g.fill(t, want, &layouts[bucket], input(t, m))
			r := trainOn(t, m, bucket, g.Seed)
			if err := o.Accumulate(i%2 == 0); err != nil {
				t.Fatal(err)
			}
			if s.losses = append(s.losses, r.Loss); accumulating && i%2 == 0 {
				continue
			}
			if _, updated := step(t, m, o, g.Optimizer.LR); !updated {
				t.Fatalf("step %d: no update", i)
			}
		}
		if err := errors.Join(m.Pull(), o.Pull()); err != nil {
			t.Fatal(err)
		}
		s.weights = bytes.Clone(m.players[0].weights.host)
		for _, x := range o.state {
			s.moments = append(s.moments, x.host...)
		}
		return s
	}
	for name, c := range map[string]struct {
		accumulating bool
		frozen       map[string]bool
	}{"all": {}, "accumulating": {accumulating: true}, "half is frozen": {frozen: half}} {
		want := train(Device{}, c.accumulating, c.frozen)
		for _, kernels := range []map[string]func([]uint64){nil, fakeKernels()} {
			d, _ := fakeWith(t, kernels)
			got := train(d, c.accumulating, c.frozen)
			for i, loss := range want.losses {
				if got.losses[i] != loss {
					t.Errorf("%s, %d kernels: loss %d is %v on the device, %v on the CPU", name, len(kernels), i,
						got.losses[i], loss)
				}
			}
			if !bytes.Equal(got.weights, want.weights) || !bytes.Equal(got.moments, want.moments) {
				t.Errorf("%s, %d kernels: weights or moments differ", name, len(kernels))
			}
		}
	}
}

// TestWeightsCrossToTheDevice: what Push takes over is what graphs see, also across more than one piece of staging
// memory.
func TestWeightsCrossToTheDevice(t *testing.T) {
	d, _ := fakeDevice(t)
	m := newMemory(d)
	defer m.Close()
	b := m.block(2*gpu.StagingBytes + 12)
	if err := m.mirror(&b); err != nil {
		t.Fatal(err)
	}
	for i := range b.host {
		b.host[i] = byte(i * 7)
	}
	want := bytes.Clone(b.host)
	if err := m.push(&b); err != nil {
		t.Fatal(err)
	}
	clear(b.host)
	if err := m.pull(&b); err != nil || !bytes.Equal(b.host, want) {
		t.Errorf("other bytes came back, %v", err)
	}
}

func TestDeviceFailures(t *testing.T) {
	b := open(t, pico)
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps)
	failed := errors.New("the card is gone")
	for _, op := range []gputest.Op{gputest.Allocate, gputest.AllocateHost, gputest.Upload} {
		d, card := fakeDevice(t)
		card.Fail(op, 1, failed)
		if _, err := NewModel(ModelConfig{
			Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 2, Device: d,
		}); !errors.Is(err, failed) {
			t.Errorf("%s fails: %v", op, err)
		}
	}
	for _, op := range []gputest.Op{gputest.Upload, gputest.Download} {
		d, card := fakeDevice(t)
		m, err := NewModel(ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Device: d})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		g.fill(t, g.Steps[0], &layouts[0], input(t, m))
		card.Fail(op, 2, failed)
		if err = m.Load(0, 0, input(t, m)); err == nil {
			_, err = m.Train(0, 0, 0, 1)
		}
		if err == nil {
			_, err = m.Train(0, 0, 0, 1)
		}
		if !errors.Is(err, failed) {
			t.Errorf("%s fails: %v", op, err)
		}
	}
}

// TestDistance: what the self-test of CUDA graphs calls different.
func TestDistance(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		name string
		a, b [][]float32
		same bool
	}{
		{"equal", [][]float32{{1, 2}, {3}}, [][]float32{{1, 2}, {3}}, true},
		{"rounding", [][]float32{{1, 2}}, [][]float32{{1, 2 + 1e-6}}, true},
		{"a stale table", [][]float32{{1, 2}, {3, 4}}, [][]float32{{1, 2}, {3, 4.1}}, false},
		{"a small vector among large ones", [][]float32{{1000}, {0.01}}, [][]float32{{1000}, {0.02}}, false},
		{"rounding where a gradient is zero", [][]float32{{1000}, {0}}, [][]float32{{1000}, {1e-9}}, true},
		{"NaN in both", [][]float32{{nan, 1}}, [][]float32{{nan, 1}}, true},
		{"NaN in one", [][]float32{{nan, 1}}, [][]float32{{0, 1}}, false},
		{"NaN in one, in front of others", [][]float32{{nan}, {1}}, [][]float32{{0}, {1}}, false},
		{"NaN in the other", [][]float32{{0}, {1}}, [][]float32{{nan}, {1}}, false},
		{"infinite in both", [][]float32{{inf, 1}, {2}}, [][]float32{{inf, 1}, {2}}, true},
		{"infinite in one", [][]float32{{inf}, {2}}, [][]float32{{1}, {2}}, false},
		{"infinite in both, wrong after it", [][]float32{{inf}, {2}}, [][]float32{{inf}, {3}}, false},
	} {
		if d := distance(tt.a, tt.b); (d <= tolerance) != tt.same {
			t.Errorf("%s: %g", tt.name, d)
		}
	}
}

// TestMadeUpBatches are what a graph may be given: lengths from 1 to their axis, indices of at least two rows.
func TestMadeUpBatches(t *testing.T) {
	d, _ := fakeDevice(t)
	b := open(t, pico)
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps)
	m, err := NewModel(ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	trial, err := newTrial(m)
	if err != nil {
		t.Fatal(err)
	}
	defer trial.close()
	for bucket, layout := range layouts {
		for _, with := range append(references, anyRows) {
			if err := trial.fill(0, bucket, with); err != nil {
				t.Fatal(err)
			}
			for _, tensor := range layout.Tensors {
				data, lengths := tensor.In(trial.stage.Bytes()), strings.HasSuffix(tensor.Name, "_lengths")
				switch tensor.DType {
				case manifest.I32:
					for i, v := range ort.View[int32](data) {
						last := i == tensor.Shape[0]-1
						if lengths && (v == 0) != (with.edges && last) || !lengths && v != 0 && v != 1 {
							t.Errorf("%+v: %s has %d in row %d", with, tensor.Name, v, i)
						}
					}
				case manifest.F32:
					if least := slices.Min(ort.View[float32](data)); (least > 0) != with.positive {
						t.Errorf("%+v: %s has %g", with, tensor.Name, least)
					}
				}
			}
		}
	}
}
