package fuse_test

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestLedgerOfNano: docs/fusion.md has these numbers. They change only if a rule or the graph changes.
func TestLedgerOfNano(t *testing.T) {
	model := load(t, "../builtin/myxtts-nano/training_model.onnx")
	sizes := shapes.Sizes{"B": 16, "T_text": 124, "T_mel": 441, "T_ref_mel": 130}
	l, err := fuse.NewLedger(model, sizes)
	if err != nil {
		t.Fatal(err)
	}
	got := []int{l.Exported.Kernels, l.Exported.Bytes / 1e6, l.Fused.Kernels, l.Fused.Bytes / 1e6, l.Products.Kernels}
	if want := []int{523, 2567, 122, 807, 135}; !reflect.DeepEqual(got, want) {
		t.Errorf("exported kernels and MB, fused kernels and MB, products: %v, want %v", got, want)
	}
	regions, kernels, bytes := 0, 0, 0
	for _, r := range l.Regions {
		regions += r.Count
		kernels += r.Count
		if r.ColumnSums > 0 {
			kernels += r.Count
		}
		bytes += r.Bytes
	}
	for _, n := range l.Left {
		kernels += n.Count
		bytes += n.Bytes
	}
	if kernels != l.Fused.Kernels || bytes != l.Fused.Bytes {
		t.Errorf("the parts of Fused sum to %d kernels, %d bytes; want %v", kernels, bytes, l.Fused)
	}
	again, err := fuse.NewLedger(model, sizes)
	if err != nil || !reflect.DeepEqual(l, again) {
		t.Errorf("another ledger of the same graph differs: %v", err)
	}
}
