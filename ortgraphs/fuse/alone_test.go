package fuse_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestAlone: a large product in bf16 is alone, unless it is an output of the graph.
func TestAlone(t *testing.T) {
	const rows, columns = 2048, 1024
	model := func(dtype onnxpb.TensorProto_DataType, rows, inner int64) *onnxpb.ModelProto {
		m := linear(dtype, inner, columns, op("Neg", "y", "xw"))
		m.Graph.Input[0], m.Graph.Output[0] = typed("x", dtype, rows, inner), typed("y", dtype, rows, columns)
		return m
	}
	output := model(bf16, rows, 16)
	output.Graph.Output = append(output.Graph.Output, typed("xw", bf16, rows, columns))
	for name, c := range map[string]struct {
		model *onnxpb.ModelProto
		alone bool
	}{
		"large": {model(bf16, rows, 16), true}, "small": {model(bf16, rows-1, 16), false}, "f32": {model(onnxpb.TensorProto_FLOAT, rows, 16), false},
		"rows of 12": {model(bf16, rows, 12), false}, "output": {output, false},
	} {
		_, g, regions := partition(t, c.model, shapes.Sizes{})
		var products []*fuse.Products
		for _, r := range regions {
			if r.Products != nil {
				products = append(products, r.Products)
			}
		}
		if (len(products) == 1) != c.alone {
			t.Errorf("%s: %d products with kernels", name, len(products))
		}
		if want := (fuse.Products{Count: 1, Rows: rows, Inner: 16, Columns: columns, Type: bf16, Alone: true}); c.alone && *products[0] != want {
			t.Errorf("%s: %+v", name, *products[0])
		}
		emit(t, g, regions)
	}
}
