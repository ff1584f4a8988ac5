package fuse_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// squares is a graph of two products with the same weight and one with its transpose, from as many rows.
func squares(t onnxpb.TensorProto_DataType, rows, width int64) *onnxpb.ModelProto {
	turn := op("Transpose", "w'", "w")
	turn.Attribute = []*onnxpb.AttributeProto{
		{Name: new("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{1, 0}},
	}
	most := op("ReduceMax", "y", "z")
	m := linear(t, width, width, op("MatMul", "xww", "xw", "w"), turn, op("MatMul", "z'", "xww", "w'"),
		op("Abs", "z", "z'"), most)
	m.Graph.Input, m.Graph.Output[0] = []*onnxpb.ValueInfoProto{typed("x", t, rows, width), typed("w", t, width,
		width)},
		typed("y", t, 1, 1)
	return m
}

// TestTurnWeights: products share the copy of a weight whose elements of a sum are apart, if they are large and in f32,
// and compute the same.
func TestTurnWeights(t *testing.T) {
	const f32 = onnxpb.TensorProto_FLOAT
	for name, c := range map[string]struct {
		model  *onnxpb.ModelProto
		copies int
	}{
		"large": {squares(f32, 1<<16, 256), 1}, "small": {squares(f32, 1<<15, 256), 0},
		"bf16": {squares(bf16, 1<<16, 256), 0}, "as large as the other operand": {squares(f32, 1<<11, 1<<11), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, g, regions := partition(t, c.model, shapes.Sizes{})
			copies, apart := 0, 0
			for _, region := range regions {
				if region.Ops() == "Copy" {
					copies++
				}
			}
			for _, n := range g.Nodes {
				if n.Kind == fuse.Product && !n.Transposed[1] {
					apart++
				}
			}
			if want := 2 - 2*c.copies; copies != c.copies || apart != want {
				t.Errorf("%d copies, and %d products of a weight whose elements of a sum are apart, want %d", copies,
					apart, want)
			}
			written := emit(t, g, regions)
			if c.copies == 0 {
				return
			}
			random := rand.New(rand.NewPCG(1, 2))
			inputs := map[string][]float64{"x": make([]float64, 1<<16*256), "w": make([]float64, 256*256)}
			for _, x := range inputs {
				for i := range x {
					x[i] = float64(random.Int32N(17)-8) / 16
				}
			}
			got, want := runModel(t, written, r, nil, inputs)["y"], runModel(t, c.model, r, nil, inputs)["y"]
			if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b) }) ||
				want[0] == 0 {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
