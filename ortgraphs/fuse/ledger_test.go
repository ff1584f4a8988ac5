package fuse_test

import (
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestLedgerOfNano: docs/fusion.md has these numbers. They change only if a rule or the graph changes.
func TestLedgerOfNano(t *testing.T) {
	for file, want := range map[string][]int{
		"training_model.onnx": {523, 2567, 126, 818, 135}, "training_model.bf16.onnx": {691, 3036, 94, 237, 135},
	} {
		t.Run(file, func(t *testing.T) { ledgerOfNano(t, file, want) })
	}
}

func ledgerOfNano(t *testing.T, file string, want []int) {
	t.Helper()
	model := load(t, "../builtin/myxtts-nano/"+file)
	sizes := shapes.Sizes{"B": 16, "T_text": 124, "T_mel": 441, "T_ref_mel": 130}
	l, err := fuse.NewLedger(model, sizes, fused.Kernels)
	if err != nil {
		t.Fatal(err)
	}
	got := []int{l.Exported.Kernels, l.Exported.Bytes / 1e6, l.Fused.Kernels, l.Fused.Bytes / 1e6, l.Products.Kernels}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("exported kernels and MB, fused kernels and MB, products: %v, want %v", got, want)
	}
	regions, kernels, bytes := 0, 0, 0
	for _, r := range l.Regions {
		regions += r.Count
		each := 1
		if r.Ops == "gradient of attention" {
			each = 2 // of queries, and of keys and values
		}
		kernels += each * r.Count
		if r.ColumnSums > 0 {
			kernels += r.Count
		}
		bytes += r.Bytes
		if len(r.Kernels) == 0 || len(r.Kernels) > each*r.Count || len(r.Plain) > 0 {
			t.Errorf("the kernels of %d regions: %v, %v", r.Count, r.Kernels, r.Plain)
		}
	}
	for _, n := range l.Left {
		kernels += n.Kernels
		bytes += n.Bytes
	}
	if kernels != l.Fused.Kernels || bytes != l.Fused.Bytes {
		t.Errorf("the parts of Fused sum to %d kernels, %d bytes; want %v", kernels, bytes, l.Fused)
	}
	again, err := fuse.NewLedger(model, sizes, fused.Kernels)
	if err != nil || !reflect.DeepEqual(l, again) {
		t.Errorf("another ledger of the same graph differs: %v", err)
	}
}

// TestLedgerOfRecurrence: the nodes of its step count once for each step, the products among the products.
func TestLedgerOfRecurrence(t *testing.T) {
	model := load(t, "../testdata/recurrences/PackedRows.onnx")
	for _, n := range model.Graph.Node {
		for _, a := range n.Attribute {
			for _, inner := range a.GetG().GetNode() {
				if inner.GetOpType() == "Sigmoid" {
					inner.OpType = proto.String("Softmax") // along rows, which a kernel of recurrences does not compute
				}
			}
		}
	}
	var kernels, products []int
	for _, steps := range []int{5, 10, 15} {
		l, err := fuse.NewLedger(model, shapes.Sizes{"B": 3, "T": steps}, fused.Kernels)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(l.Left, func(n fuse.Left) bool { return n.Op == "Scan" })
		if i < 0 || l.Left[i].Count != 4 {
			t.Fatalf("left: %+v", l.Left)
		}
		kernels, products = append(kernels, l.Left[i].Kernels), append(products, l.Products.Kernels)
	}
	if perStep := (kernels[1] - kernels[0]) / 5; perStep < 10 || kernels[0] != 5*perStep || kernels[2] != 15*perStep {
		t.Errorf("kernels of 5, 10 and 15 steps: %d", kernels)
	}
	if products[0] == products[1] || products[2]-products[1] != products[1]-products[0] {
		t.Errorf("products of 5, 10 and 15 steps: %d", products)
	}
}
