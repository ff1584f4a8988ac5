package fuse_test

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestShorten: what a region after a product normalizes again is kept in bf16, normalized, if the graph computes in
// bf16. If something else needs the f32 values as long, or if what is multiplied is not a difference, they are kept as
// they are.
func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		name               string
		kind               onnxpb.TensorProto_DataType // of products
		longer, difference bool
		kept               onnxpb.TensorProto_DataType // of the large tensor that remains in memory
	}{
		{"bf16", onnxpb.TensorProto_BFLOAT16, false, true, onnxpb.TensorProto_BFLOAT16},
		{"f32", onnxpb.TensorProto_FLOAT, false, true, onnxpb.TensorProto_FLOAT},
		{"needed in f32", onnxpb.TensorProto_BFLOAT16, true, true, onnxpb.TensorProto_FLOAT},
		{"no difference", onnxpb.TensorProto_BFLOAT16, false, false, onnxpb.TensorProto_FLOAT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := residual(tt.kind, tt.longer, tt.difference)
			_, g, regions := partition(t, model, shapes.Sizes{})
			for _, r := range regions {
				if err := fuse.CheckPlaces(r); err != nil {
					t.Error(err)
				}
			}
			last := regions[len(regions)-1]
			i := slices.IndexFunc(last.In, func(x *fuse.Tensor) bool {
				return x.Elements() == 6*16 && x.From != nil && x.From.Kind == fuse.Elementwise
			})
			if i < 0 || last.In[i].Type != tt.kept {
				t.Errorf("the last region reads %v of %v", last.In, last.Ops())
			}
			got, want := computed(t, g, regions), plainly(t, model)
			for i, o := range g.Outputs {
				for j, x := range got[o.Tensor] {
					if w := want[i][j].f; math.Abs(x.f-w) > 1e-2*(math.Abs(w)+0.1) {
						t.Errorf("%s: %g, want %g", o.Name, x.f, w)
					}
				}
			}
		})
	}
}

// residual normalizes a residual sum before a product, and again after it, as a backward pass does.
func residual(kind onnxpb.TensorProto_DataType, longer, difference bool) *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("shorten")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{6, 16}), info("w", []int{16, 16}))
	weights := b.add("Cast", "w", to(kind))
	product := func(x string) string {
		return b.add("Cast", b.add("MatMul", b.add("Cast", x, to(kind)), weights), to(onnxpb.TensorProto_FLOAT))
	}
	sum := b.add("Add", b.add("Tanh", product("x")), "x")
	mean, most := b.add("ReduceMean", sum, b.numbers(1)), b.add("ReduceMax", sum, b.numbers(1))
	normal := func() string {
		if difference {
			return b.add("Div", b.add("Sub", sum, mean), most)
		}
		return b.add("Div", b.add("Add", sum, mean), most)
	}
	out := b.add("Mul", b.add("Tanh", product(b.add("Tanh", normal()))), normal())
	if longer {
		out = b.add("Add", out, sum)
	}
	b.graph.Output = append(b.graph.Output, info(out, nil))
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

// computed returns the tensors of a graph on made-up inputs.
func computed(t *testing.T, g *fuse.Graph, regions []*fuse.Region) memory {
	t.Helper()
	given := memory{}
	for i, in := range g.Inputs {
		values := make([]float64, in.Elements())
		for j := range values {
			values[j] = float64((7*i+5*j)%64)/32 - 1
		}
		given[in] = encode(values, in.Type)
	}
	m, err := interpret(g, regions, given)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plainly returns the outputs of a model without regions.
func plainly(t *testing.T, model *onnxpb.ModelProto) (outputs [][]number) {
	t.Helper()
	_, g := lowered(t, model, shapes.Sizes{})
	m := computed(t, g, nil)
	for _, o := range g.Outputs {
		outputs = append(outputs, m[o.Tensor])
	}
	return outputs
}
