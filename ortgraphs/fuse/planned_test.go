package fuse_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestPlanned: a large product in bf16 is planned, whatever reads it, if its sizes are aligned.
func TestPlanned(t *testing.T) {
	const rows, inner, columns = 2048, 16, 1024
	plain := func(dtype onnxpb.TensorProto_DataType, rows, inner, columns int64) *onnxpb.ModelProto {
		m := linear(dtype, inner, columns, op("Neg", "y", "xw"))
		m.Graph.Input[0], m.Graph.Output[0] = typed("x", dtype, rows, inner), typed("y", dtype, rows, columns)
		return m
	}
	output := plain(bf16, rows, inner, columns)
	output.Graph.Output = append(output.Graph.Output, typed("xw", bf16, rows, columns))
	transposed := func(rows int64) *onnxpb.ModelProto {
		m := plain(bf16, rows, inner, columns)
		m.Graph.Input[0] = typed("x'", bf16, inner, rows)
		transpose := op("Transpose", "x", "x'")
		transpose.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{1, 0}},
		}
		m.Graph.Node = slices.Insert(m.Graph.Node, 0, transpose)
		return m
	}
	cube := plain(bf16, rows, inner, columns)
	for _, v := range []*onnxpb.ValueInfoProto{cube.Graph.Input[0], cube.Graph.Output[0]} {
		shape := v.Type.GetTensorType().Shape
		shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: rows / 8}
		shape.Dim = slices.Insert(shape.Dim, 0,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 8}})
	}
	for name, c := range map[string]struct {
		model   *onnxpb.ModelProto
		planned bool
	}{
		"large": {plain(bf16, rows, inner, columns), true}, "small": {plain(bf16, rows-1, inner, columns), false},
		"f32":            {plain(onnxpb.TensorProto_FLOAT, rows, inner, columns), false},
		"12 to multiply": {plain(bf16, rows, 12, columns), false},
		"odd columns":    {plain(bf16, rows, inner, columns+1), false}, "output": {output, true},
		"rows in two dimensions": {cube, true}, "transposed": {transposed(rows), true},
		"odd rows, transposed": {transposed(rows + 1), false}, "odd rows": {plain(bf16, rows+1, inner, columns), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, regions := partition(t, c.model, shapes.Sizes{})
			var products []fuse.Products
			for _, r := range regions {
				if productsOf(r) != nil {
					products = append(products, *productsOf(r))
				}
			}
			if (len(products) == 1) != c.planned || len(products) > 1 {
				t.Fatalf("%d products with kernels", len(products))
			}
			p := products
			if c.planned && !(p[0].Planned && p[0].Count == 1 && p[0].Rows/8 == rows/8 && p[0].Inner == inner &&
				p[0].Columns == columns) {
				t.Errorf("%+v", p[0])
			}
			emit(t, g, regions)
		})
	}
}
