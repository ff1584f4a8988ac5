package fuse_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestScales: a product reads what its operand is a multiple of, if that is in memory, and the results are the same to
// the bit. A factor that is no power of two would change them, and an operand that nothing else reads is written in any
// case.
func TestScales(t *testing.T) {
	for _, tt := range []struct {
		name   string
		factor float32
		alone  bool // only the multiple is read
		both   bool // operands are multiples
		sunk   bool
	}{
		{"a power of two", 0.125, false, false, true}, {"negative", -2, false, false, true},
		{"another factor", 0.3, false, false, false}, {"nothing else reads it", 0.125, true, false, false},
		{"both operands", 0.125, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			short := to(onnxpb.TensorProto_BFLOAT16)
			b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("scales")}}
			b.graph.Input = append(b.graph.Input, info("x", []int{8, 16}), info("y", []int{16, 8}))
			x, y := b.add("Tanh", b.add("Cast", "x", short)), b.add("Tanh", b.add("Cast", "y", short))
			multiple := b.add("Mul", x, b.add("Cast", b.number(tt.factor), short))
			other := y
			if tt.both {
				other = b.add("Mul", y, b.add("Cast", b.number(-2), short))
			}
			b.graph.Output = append(b.graph.Output,
				info(b.add("Cast", b.add("MatMul", multiple, other), to(onnxpb.TensorProto_FLOAT)), nil))
			if !tt.alone {
				b.graph.Output = append(b.graph.Output,
					info(b.add("Cast", b.add("MatMul", y, x), to(onnxpb.TensorProto_FLOAT)), nil))
			}
			model := &onnxpb.ModelProto{
				IrVersion: proto.Int64(9), Graph: b.graph,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
			}
			_, g, regions := partition(t, model, shapes.Sizes{})
			written := slices.ContainsFunc(regions, func(r *fuse.Region) bool {
				return slices.ContainsFunc(r.Out, func(t *fuse.Tensor) bool { return t.Name == multiple })
			})
			if written == tt.sunk {
				t.Errorf("the multiple is written: %t", written)
			}
			got, want := computed(t, g, regions), plainly(t, model)
			for i, o := range g.Outputs {
				if !slices.Equal(got[o.Tensor], want[i]) {
					t.Errorf("%s: %v, want %v", o.Name, got[o.Tensor], want[i])
				}
			}
		})
	}
}
