package fuse_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// constants are the numbers that small graphs use.
var constants = map[string]float32{
	"root": math.Sqrt2 / 2, "root of 2": math.Sqrt2, "one": 1, "half": 0.5, "minus half": -0.5, "two": 2,
}

// small returns the model of a graph whose inputs have one shape, and whose outputs are what write returns.
func small(shape []int, inputs []string, write func(b *builder) []string) *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("small")}}
	for _, in := range inputs {
		b.graph.Input = append(b.graph.Input, info(in, shape))
	}
	for name, x := range constants {
		b.graph.Initializer = append(b.graph.Initializer,
			&onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(f32)), FloatData: []float32{x}})
	}
	for _, out := range write(b) {
		b.graph.Output = append(b.graph.Output, info(out, nil))
	}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

// TestFetchAhead: a kernel that computes several rows after another, with sums of columns, asks for its next row at
// addresses that are there, and computes what it would without.
func TestFetchAhead(t *testing.T) {
	// with so many columns, a block computes one row at a time, and there are 264 blocks
	const rows, columns = 291, 1032
	model := small([]int{rows, columns}, []string{"x", "y"}, func(b *builder) []string {
		b.graph.Initializer = append(b.graph.Initializer,
			&onnxpb.TensorProto{
				Name: proto.String("last"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
				Int64Data: []int64{1},
			}, &onnxpb.TensorProto{
				Name: proto.String("first"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
				Int64Data: []int64{0},
			})
		z := b.add("Mul", b.add("Sub", "x", b.add("ReduceMean", "x", "last")), "y")
		return []string{z, b.add("ReduceSum", z, "first")}
	})
	r, g, regions := partition(t, model, shapes.Sizes{})
	given, values := batch(r, nil), memory{}
	for _, in := range g.Inputs {
		values[in] = encode(given[in.Name], f32)
	}
	m, err := interpret(g, regions, values)
	if err != nil {
		t.Fatal(err)
	}
	var k kernels
	k.add(t, regions, m)
	k.complete(t, 1)
	if text := k.sources[0].Text; !strings.Contains(text, "\tfetch_ahead(p") {
		t.Errorf("nothing is fetched ahead:\n%s", text)
	}
	k.check(t, &emulation{}, 1e-4)
}

// TestForeignSquare: 1 - u^2 of a square that another region computes is no 1 - tanh(x)^2, and its kernel reads nothing
// but the square.
func TestForeignSquare(t *testing.T) {
	for _, op := range []string{"Neg", "Tanh"} {
		model := small([]int{8, 8}, []string{"x", "w"}, func(b *builder) []string {
			a := b.add(op, "x")
			square := b.add("Mul", a, a)
			return []string{b.add("Mul", b.add("Sub", "one", square), b.add("MatMul", square, "w"))}
		})
		_, _, regions := partition(t, model, shapes.Sizes{})
		for _, r := range regions {
			if _, err := cudac.Generate(r, cudac.Target{}); err != nil && productsOf(r) == nil {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
}
