package fuse_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestAlignedProducts: sides of products that are rows in memory and no multiples of 16 bytes are filled up where that
// gains time, with the same results. Two products fill up their operand once.
func TestAlignedProducts(t *testing.T) {
	for _, tt := range []struct {
		kind                 onnxpb.TensorProto_DataType
		rows, inner, columns int
		turned               [2]bool // operands are transposed
		want                 string  // rows, terms and columns of the product
	}{
		{bf16, 304, 16, 312, [2]bool{}, "304 16 312"},
		{bf16, 304, 9, 312, [2]bool{}, "304 16 312"},
		{bf16, 304, 16, 305, [2]bool{}, "304 16 312"},
		{bf16, 305, 16, 312, [2]bool{}, "305 16 312"}, // its rows are apart in memory in any case
		{bf16, 305, 9, 307, [2]bool{}, "305 16 312"},
		{bf16, 305, 16, 312, [2]bool{true, false}, "312 16 312"},
		{bf16, 304, 9, 312, [2]bool{true, false}, "304 9 312"}, // so are its terms
		{bf16, 305, 9, 307, [2]bool{true, true}, "312 16 312"},
		{bf16, 304, 9, 307, [2]bool{false, true}, "304 16 312"},
		{bf16, 40, 9, 40, [2]bool{}, "40 9 40"}, // too small
		{f32, 600, 12, 604, [2]bool{}, "600 12 604"},
		{f32, 600, 9, 601, [2]bool{}, "600 12 604"},
		{f32, 40, 9, 41, [2]bool{}, "40 9 41"}, // too small
	} {
		t.Run(fmt.Sprint(tt.kind, tt.rows, tt.inner, tt.columns, tt.turned), func(t *testing.T) {
			b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("aligned")}}
			operand := func(name string, rows, columns int, turned bool) string {
				shape := []int{2, rows, columns}
				if turned {
					shape = []int{2, columns, rows}
				}
				b.graph.Input = append(b.graph.Input, info(name, shape))
				x := b.add("Sign", b.add("Cast", name, to(tt.kind))) // sums of these are exact
				if turned {
					x = b.add("Transpose", x, list("perm", 0, 2, 1))
				}
				return x
			}
			x, y := operand("x", tt.rows, tt.inner, tt.turned[0]), operand("y", tt.inner, tt.columns, tt.turned[1])
			for _, other := range []string{x, b.add("Neg", x)} {
				z := b.add("Cast", b.add("Neg", b.add("MatMul", other, y)), to(f32))
				b.graph.Output = append(b.graph.Output, info(z, nil))
			}
			model := &onnxpb.ModelProto{
				IrVersion: proto.Int64(9), Graph: b.graph,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
			}
			_, g := lowered(t, model, shapes.Sizes{})
			if tt.rows > 40 {
				g.LeastSaved = 1e-9
			}
			regions, err := fuse.VerifiedPartition(g)
			if err != nil {
				t.Fatal(err)
			}
			filled := map[*fuse.Tensor]bool{}
			for _, n := range g.Nodes {
				if n.Kind != fuse.Product {
					continue
				}
				shape := n.Out[0].Shape
				if got := fmt.Sprint(shape[1], n.Terms(), shape[2]); got != tt.want {
					t.Errorf("a product of %s, want %s", got, tt.want)
				}
				filled[n.In[1].Tensor] = true
			}
			if len(filled) != 1 {
				t.Errorf("the products read %d copies of an operand", len(filled))
			}
			got, want := computed(t, g, regions), plainly(t, model)
			for i, o := range g.Outputs {
				if !slices.Equal(got[o.Tensor], want[i]) {
					t.Errorf("%s differs", o.Name)
				}
			}
		})
	}
}

// TestAlignedResults: a result that is filled up is copied for what cannot read a part of it: another product, and an
// output of the model. Weights are copied for a large product, and not for a small one.
func TestAlignedResults(t *testing.T) {
	for _, tt := range []struct {
		rows   int64
		filled bool
	}{{16 << 10, true}, {64, false}} {
		m := linear(bf16, 512, 513, op("MatMul", "y", "xw", "v"))
		for _, v := range []*onnxpb.ValueInfoProto{m.Graph.Input[0], m.Graph.Output[0]} {
			v.Type.GetTensorType().Shape.Dim[0] = &onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: tt.rows},
			}
		}
		m.Graph.Output[0] = typed("y", bf16, tt.rows, 255)
		m.Graph.Output = append(m.Graph.Output, typed("xw", bf16, tt.rows, 513))
		m.Graph.Input = append(m.Graph.Input, typed("v", bf16, 513, 255))
		_, g, _ := partition(t, m, shapes.Sizes{})
		want := [][3]int{{int(tt.rows), 512, 513}, {int(tt.rows), 513, 255}}
		if tt.filled {
			want = [][3]int{{int(tt.rows), 512, 520}, {int(tt.rows), 520, 256}}
		}
		var got [][3]int
		for _, n := range g.Nodes {
			if n.Kind == fuse.Product {
				got = append(got, [3]int{n.Out[0].Shape[0], n.Terms(), n.Out[0].Shape[1]})
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("products of %v, want %v", got, want)
		}
		for _, o := range g.Outputs {
			if !slices.Contains([]int{513, 255}, o.Tensor.Shape[1]) {
				t.Errorf("the output %s has the shape %v", o.Name, o.Tensor.Shape)
			}
		}
	}
}
