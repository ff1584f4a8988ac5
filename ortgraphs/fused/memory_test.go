package fused_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestLifetimes: the arena of a fused graph is as large as its plan says, to within what ONNX Runtime keeps of the
// model in it.
func TestLifetimes(t *testing.T) {
	sizes := shapes.Sizes{"B": 8, "T_text": 24, "T_mel": 40}
	_, p := planned(t, "../builtin/myxtts-multispeaker/training_model.onnx", sizes)
	l, err := p.Lifetimes()
	if err != nil {
		t.Fatal(err)
	}
	peak, at := l.Peak()
	if live := l.Live(at); len(live) < 20 || live[0].Bytes < live[1].Bytes || l.Nodes[at] == nil {
		t.Errorf("%d buffers at the peak", len(live))
	}
	programs, err := fusedtest.NewCompiler(t).Compile(p.Sources())
	if err != nil {
		t.Fatal(err)
	}
	if failed := p.Load(programs); len(failed) > 0 {
		t.Fatal(failed)
	}
	model, kernels, err := p.Link(nil)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := ort.NewArena(ort.Host, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	for range 2 {
		run(t, ort.SessionConfig{Model: model, Kernels: kernels, Arena: arena}, sizes)
	}
	taken, err := arena.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %d, arena %d, taken %d", peak, lifetime.Arena(l), taken)
	planned := float64(lifetime.Arena(l))
	if float64(taken) < 0.95*planned || float64(taken) > 1.05*planned || float64(peak) > planned {
		t.Errorf("the arena has %d bytes, planned are %.0f, of which %d are used at one time", taken, planned, peak)
	}
}
