package lint_test

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// FuzzCheck derives the shapes of arbitrary graphs. Check must always terminate.
func FuzzCheck(f *testing.F) {
	data, err := os.ReadFile("../testdata/pico/eval_model.onnx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, build := range []func(g graph){
		func(g graph) { g.ints("shape", []int64{2}, -1, 8); g.node("y = Reshape(x, shape)") },
		func(g graph) { g.ints("s", []int64{1}, -7); g.node("y = ConstantOfShape(s)") },
		func(g graph) { g.ints("a", nil, 1); g.ints("b", nil, 0); g.node("y = Range(a, b, b)") },
		func(g graph) {
			g.ints("s", []int64{3}, 1<<31, 1<<31, 4)
			g.node("y = Expand(mask, s)")
			g.node("z = Concat(y, y)", "axis", 9)
		},
		func(g graph) {
			g.ints("starts", []int64{1}, 5)
			g.ints("steps", []int64{2}, -1, 1)
			g.node("s = Shape(x)")
			g.node("y = Slice(s, starts, starts, , steps)")
		},
		func(g graph) { g.node("a, b = Split(x)", "num_outputs", 3) },
		func(g graph) { g.node("y = MatMul(x, x)"); g.node("z = Conv(x, x)", "strides", []int64{0}) },
	} {
		g := newGraph()
		build(g)
		data, err := proto.Marshal(&onnxpb.ModelProto{Graph: g.GraphProto})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		model := new(onnxpb.ModelProto)
		if len(data) > 1<<20 || proto.Unmarshal(data, model) != nil {
			return
		}
		lint.Check(model, trials)
		if r, err := shapes.Infer(model, trials[0]); err == nil {
			if c := r.Cost(); c.FLOPs < 0 || c.Bytes < 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
