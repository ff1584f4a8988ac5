package fuse_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestNarrowAttention: with its matrices rounded to bf16, attention in f32 gets kernels, and the graph computes the
// same to within that rounding.
func TestNarrowAttention(t *testing.T) {
	model := load(t, "../builtin/myxtts-nano/training_model.onnx")
	sizes := shapes.Sizes{"B": 2, "T_text": 3, "T_mel": 4, "T_ref_mel": 4}
	r, _, regions := partition(t, model, sizes)
	if forward, backward := regionsOf(regions); forward+backward > 0 {
		t.Fatalf("%d regions of attention in f32", forward+backward)
	}
	g, err := fuse.Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	found := fuse.NarrowAttention(g)
	regions = fuse.Partition(g)
	if forward, backward := regionsOf(regions); found == 0 || forward != found || backward != found {
		t.Errorf("of %d softmaxes, %d have a region and %d a gradient's", found, forward, backward)
	}
	emit(t, g, regions)
	m, want := results(t, model, r, g, regions, batch(r, sizes))
	for _, o := range g.Outputs {
		got := make([]float64, len(m[o.Tensor]))
		for i, x := range m[o.Tensor] {
			got[i] = x.f
		}
		near(t, o.Name, got, want[o.Name], 0.03, 1e-3)
	}
}
