package train

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
)

// TestTry: a synthetic batch is computed and measured, on either device and with or without a sum of gradients, and no
// weight changes; the step after it finds the same norm.
func TestTry(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps)
	card, fake := fakeDevice(t)
	for _, d := range []Device{{}, card} {
		m, err := NewModel(
			ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		testUnload(t, m, fake)
		for _, accumulating := range []bool{false, true} {
			o := newOptimizer(t, m, g.Optimizer, accumulating)
			defer o.Close()
			before := weightsOf(t, m)
			r, err := m.Try(0, 0)
			if err != nil || !isFinite(r.Loss) || r.Weight == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			norm, finite, err := o.Norm()
			if err != nil || !finite || !(norm > 0) || o.Steps != 0 || o.Incomplete() {
				t.Errorf("norm %g, finite %v, %v", norm, finite, err)
			}
			if !bytes.Equal(weightsOf(t, m), before) {
				t.Error("weights have changed")
			}
			again, updated := step(t, m, o, 1e-3)
			if again != norm || !updated || bytes.Equal(weightsOf(t, m), before) {
				t.Errorf("the step finds norm %g, updates %v; before it was %g", again, updated, norm)
			}
		}
	}
}

func weightsOf(t *testing.T, m *Model) (all []byte) {
	t.Helper()
	if err := m.Pull(); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Weights() {
		all = append(all, w.Data...)
	}
	return all
}

// testUnload: what was loaded comes back.
func testUnload(t *testing.T, m *Model, pin gpu.Context) {
	t.Helper()
	size := m.layouts[0].InputBytes
	pinned, err := pin.AllocateHost(2 * size)
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	sent, got := pinned.Bytes()[:size], pinned.Bytes()[size:]
	rand.NewChaCha8([32]byte{1}).Read(sent)
	want := slices.Clone(sent)
	if err := errors.Join(m.Load(0, 0, sent), m.Unload(0, 0, got)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or another batch", err)
	}
}
