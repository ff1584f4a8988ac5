package train

import (
	"bytes"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
)

// TestProofOfFreshWeights: the proof sees all gradients also where weights are all zero, and leaves the weights as they
// were.
func TestProofOfFreshWeights(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	d, _ := fakeDevice(t)
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
		Fuse: FuseConfig{Compiler: fusedtest.NewCompiler(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	clear(m.players[0].weights.host)
	if err := m.Push(); err != nil {
		t.Fatal(err)
	}
	p, err := m.Prepare()
	if err != nil || p.Forms[0].Fusion == nil {
		t.Fatal(p.Forms, err)
	}
	if len(p.Forms[0].Fusion.Unproved) > 0 {
		t.Errorf("unproved: %v", p.Forms[0].Fusion.Unproved)
	}
	err = m.Pull()
	if err != nil || !bytes.Equal(m.players[0].weights.host, make([]byte, len(m.players[0].weights.host))) {
		t.Errorf("other weights after the proof, %v", err)
	}
}

// TestUnproved: what shows nothing of a kernel is named: a loss or a gradient that is zero, or has a number that is not
// finite.
func TestUnproved(t *testing.T) {
	m, _, _ := picoOn(t, Device{})
	r := &reference{scalars: []float32{1, 3, 2, float32(math.NaN())}, sizes: make([]difference,
		len(m.players[0].params))}
	for i := range r.sizes {
		r.sizes[i].norm = 1
	}
	r.sizes[1].norm, r.sizes[2].blind = 0, 1
	names := r.unproved(&trial{Model: m, player: m.players[0]})
	want := []string{
		"metric." + m.names[1], "grad." + m.players[0].params[1].Name, "grad." + m.players[0].params[2].Name,
	}
	if len(names) != 3 || names[0] != want[0] || names[1] != want[1] || names[2] != want[2] {
		t.Errorf("%v, want %v", names, want)
	}
	if r.finite() {
		t.Error("a gradient that is not finite is finite")
	}
	if r.sizes[2].blind = 0; !r.finite() {
		t.Error("a metric that is not finite needs another batch")
	}
}
