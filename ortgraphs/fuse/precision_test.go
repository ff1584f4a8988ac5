package fuse_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestNegativeGelu: each result of GELU has the precision of f32, also those that are small because their argument is
// far below 0.
func TestNegativeGelu(t *testing.T) {
	arguments := []float64{-8, -6.5, -5, -4.7, -4, -3, -2, -1, -0.1, -1e-3, 0.5, 2, 5}
	for _, approximate := range []string{"none", "tanh"} {
		b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("gelu")}}
		shape := []int{len(arguments)}
		b.graph.Input = append(b.graph.Input, info("x", shape), info("inverse", shape))
		b.graph.Output = append(b.graph.Output,
			info(b.add("Mul", b.add("Gelu", "x", word("approximate", approximate)), "inverse"), nil))
		model := &onnxpb.ModelProto{
			IrVersion: proto.Int64(9), Graph: b.graph,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		}
		_, g, regions := partition(t, model, shapes.Sizes{})
		gelu := operators.Table[map[string]string{"none": "Gelu", "tanh": "GeluTanh"}[approximate]]
		var inverse []float64 // by which all products are about 1, so that none of their differences is small
		for _, x := range arguments {
			inverse = append(inverse, 1/gelu.Of([]float64{float64(float32(x))}))
		}
		m, err := interpret(g, regions, memory{g.Inputs[0]: encode(arguments, f32), g.Inputs[1]: encode(inverse, f32)})
		if err != nil {
			t.Fatal(err)
		}
		var k kernels
		k.add(t, regions, m)
		k.complete(t, 1)
		k.check(t, &emulation{}, 1e-5)
	}
}
