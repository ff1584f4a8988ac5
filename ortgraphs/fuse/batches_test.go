package fuse_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// gradients is a graph of products x_i' y: as many as there are widths of x_i, each an output. The last one is read,
// too.
func gradients(rows, width int64, widths ...int64) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: proto.String("gradients"), Input: []*onnxpb.ValueInfoProto{matrixInfo("y", rows,
		width)}}
	for i, w := range widths {
		n := string(rune('a' + i))
		g.Input = append(g.Input, matrixInfo(n, rows, w))
		g.Node = append(g.Node,
			&onnxpb.NodeProto{OpType: proto.String("Gemm"), Input: []string{n, "y"}, Output: []string{"d" + n},
				Attribute: []*onnxpb.AttributeProto{
					{Name: proto.String("transA"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(1)},
				}})
		g.Output = append(g.Output, matrixInfo("d"+n, w, width))
	}
	last := "d" + string(rune('a'+len(widths)-1))
	g.Node = append(g.Node,
		&onnxpb.NodeProto{OpType: proto.String("Neg"), Input: []string{last}, Output: []string{"read"}})
	g.Output = append(g.Output, matrixInfo("read", widths[len(widths)-1], width))
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

func matrixInfo(name string, rows, columns int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range []int64{rows, columns} {
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}}}}
}

// TestBatches: one launch computes the gradients of one form, until their results keep a GPU busy or their operands
// take too much memory.
func TestBatches(t *testing.T) {
	same := func(n int, width int64) []int64 { return slices.Repeat([]int64{width}, n) }
	for name, c := range map[string]struct {
		rows, width int64
		widths      []int64
		want        []int // products of each launch
	}{
		"equal, but for one that is read": {64, 256, same(5, 512), []int{4}},
		"two forms":                       {64, 256, []int64{512, 128, 512, 128, 512, 128}, []int{2, 3}},
		"one of its form":                 {64, 256, []int64{512, 128, 256}, nil},
		"small sides":                     {64, 256, same(4, 80), nil},
		"as large as a GPU needs":         {64, 2048, same(3, 2048), nil},
		"until they are as large":         {64, 1024, same(10, 1024), []int{4, 4}},
		"until memory is full":            {1 << 16, 128, same(14, 128), []int{10, 3}},
		"sums of which few fit in memory": {1 << 17, 128, same(8, 128), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, regions := partition(t, gradients(c.rows, c.width, c.widths...), shapes.Sizes{})
			var got []int
			for _, r := range regions {
				if p := productsOf(r); p != nil {
					got = append(got, p.Count)
					if p.Count != len(r.Nodes) || p.Inner != int(c.rows) || p.Columns != int(c.width) ||
						p.Transposed != [2]bool{true, false} {
						t.Errorf("%+v of %d nodes", p, len(r.Nodes))
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("launches of %v products, want %v", got, c.want)
			}
			emit(t, g, regions)
		})
	}
}

// TestBatchedOrder: products wait for the last of their batch, and everything else keeps its order.
func TestBatchedOrder(t *testing.T) {
	_, g, _ := partition(t, gradients(64, 256, 512, 128, 512, 128, 512, 512), shapes.Sizes{})
	var got []string
	for _, n := range g.Nodes {
		got = append(got, strings.TrimSuffix(n.Out[0].Name, "/product"))
	}
	if want := []string{"db", "dd", "da", "dc", "de", "df", "read"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
