package fuse_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// newForm makes up a model with the inputs x and y [2 3 4], z [2 4 3], m [3 4] and n [4 3].
func newForm() *builder {
	b := &builder{Rand: rand.New(rand.NewPCG(3, 4)), graph: &onnxpb.GraphProto{Name: proto.String("form")}}
	for _, v := range []value{
		{"x", []int{2, 3, 4}}, {"y", []int{2, 3, 4}}, {"z", []int{2, 4, 3}}, {"m", []int{3, 4}}, {"n", []int{4, 3}},
	} {
		b.graph.Input = append(b.graph.Input, info(v.name, v.shape))
		b.values = append(b.values, v)
	}
	return b
}

// outputs returns the model with the given outputs.
func (b *builder) outputs(names ...string) *onnxpb.ModelProto {
	m := b.model()
	m.Graph.Output = nil
	for _, name := range names {
		m.Graph.Output = append(m.Graph.Output, info(name, nil))
	}
	return m
}

// add adds a node whose inputs stand before its attributes, and returns the name of its output.
func (b *builder) add(op string, args ...any) string {
	var in []string
	var attributes []*onnxpb.AttributeProto
	for _, a := range args {
		switch a := a.(type) {
		case string:
			in = append(in, a)
		case *onnxpb.AttributeProto:
			attributes = append(attributes, a)
		}
	}
	b.node(op, nil, attributes, in...)
	return b.values[len(b.values)-1].name
}

// float is the attribute of an operator.
func float(name string, x float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(x),
	}
}

func word(name, s string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(s)}
}

func list(name string, x ...int) *onnxpb.AttributeProto { return attributes(name, x)[0] }

func content(name string, t *onnxpb.TensorProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: t}
}

func to(t onnxpb.TensorProto_DataType) *onnxpb.AttributeProto { return attribute("to", int(t)) }

const (
	f32   = onnxpb.TensorProto_FLOAT
	i32   = onnxpb.TensorProto_INT32
	i64   = onnxpb.TensorProto_INT64
	boole = onnxpb.TensorProto_BOOL
)

// whole returns integers that are made of an input.
func (b *builder) whole(name string, t onnxpb.TensorProto_DataType) string {
	return b.add("Cast", b.add("Mul", name, b.number(20)), to(t))
}

// number adds a scalar constant.
func (b *builder) number(x float32) string {
	name := b.numbers()
	t := b.graph.Initializer[len(b.graph.Initializer)-1]
	t.Dims, t.DataType, t.FloatData = nil, proto.Int32(int32(f32)), []float32{x}
	return name
}

// forms are operators as models have them: those that rules know, in each form, and others. Each returns the names of
// outputs.
var forms = map[string]func(b *builder) []string{
	"functions": func(b *builder) []string {
		return []string{b.add("Gelu", "x", word("approximate", "tanh")), b.add("LeakyRelu", "x", float("alpha", 0.3)),
			b.add("Elu", "x", float("alpha", 2)), b.add("Elu", "y"), b.add("Max", "x", "y", "m"), b.add("Min", "x"),
			b.add("Sum", "x", "y", "m")}
	},
	"broadcast": func(b *builder) (out []string) {
		for _, op := range []string{"Add", "Sub", "Mul", "Div", "Max", "Min"} {
			out = append(out, b.add(op, "x", "m"), b.add(op, b.number(3), "y"))
		}
		return append(out, b.add("Where", b.add("Less", "x", "y"), "m", b.number(1)))
	},
	"integers": func(b *builder) (out []string) {
		x, y := b.whole("x", i64), b.whole("y", i64)
		ten := b.numbers(10)
		for _, z := range []string{b.add("Pad", x, b.numbers(1, 0, 0, 0, 0, 0), b.numbers(1)), b.add("Mod", x, ten),
			b.add("Mod", x, ten, attribute("fmod", 1)), b.add("Add", x, y), b.add("Neg", x),
			b.add("ReduceSum", x, b.numbers(1)), b.add("ReduceMax", b.whole("x", i32)),
			b.add("MatMul", x, b.add("Transpose", y, list("perm", 0, 2, 1))),
			b.add("Pad", x, b.numbers(0, 0, 1, 0, 0, 1)), b.add("Pad", b.whole("m", i32), b.numbers(0, 0, 1, 0)),
			b.add("MatMul", b.whole("m", i32), b.whole("n", i32))} {
			out = append(out, b.add("Cast", z, to(f32)))
		}
		return append(out, b.add("Cast", b.add("Cast", x, to(boole)), to(f32)), b.add("CastLike", x, "y"),
			b.add("Pad", "m", b.numbers(0, 0, 1, 0)), b.add("ReduceSum", "x", b.numbers(1)))
	},
	"look-ups": func(b *builder) []string {
		index := b.add("Cast", b.add("Greater", b.add("ReduceSum", "x", b.numbers(2)), b.number(0)), to(i64))
		negative := b.add("Sub", index, b.numbers(3))
		last := b.add("Cast", b.number(-1), to(i64))
		return []string{
			b.add("Gather", "x", b.numbers(2), attribute("axis", 1)), b.add("Gather", "x", last, attribute("axis", 2)),
			b.add("Gather", "m", b.numbers(2)), b.add("GatherElements", "x", index, attribute("axis", 2)),
			b.add("GatherElements", b.add("LogSoftmax", "y"), negative, attribute("axis", -1)),
			b.add("GatherElements", "m", b.add("Squeeze", index, b.numbers(2))),
		}
	},
	"groups": func(b *builder) []string {
		scale, bias := b.floats(3), b.floats(3)
		one, none := b.add("Div", scale, scale), b.add("Sub", bias, bias)
		grouped := b.add("Reshape", b.add("Transpose", b.add("Exp", "z"), list("perm", 1, 0, 2)), b.numbers(2, 2, 6))
		wide := b.add("Reshape", b.add("Transpose", "x", list("perm", 2, 0, 1)), b.numbers(2, 3, 2, 2))
		two := b.add("Slice", scale, b.numbers(0), b.numbers(2))
		return []string{b.add("InstanceNormalization", "x", scale, bias, float("epsilon", 1e-3)), b.add(
			"InstanceNormalization", "y", one, none), b.add("InstanceNormalization", grouped, two, two), b.add(
			"InstanceNormalization", wide, scale, bias),
			b.add("BatchNormalization", "x", scale, bias, b.floats(3), one),
			b.add("BatchNormalization", grouped, two, two, two, b.add("Slice", one, b.numbers(0), b.numbers(2)),
				float("epsilon", 1e-3))}
	},
	"clip": func(b *builder) []string {
		return []string{b.add("Clip", "x", b.number(-0.1),
			b.number(0.2)), b.add("Clip", "x", "", b.number(0)), b.add("Clip", "x", b.number(0)), b.add("Clip",
			"x")}
	},
	"normal": func(b *builder) []string {
		scale, bias := b.floats(4), b.floats(4)
		y := b.add("LayerNormalization", "x", scale, bias, float("epsilon", 1e-3))
		n := b.graph.Node[len(b.graph.Node)-1]
		n.Output = append(n.Output, "mean", "inverse")
		return []string{y, "mean", "inverse", b.add("LayerNormalization", "y", scale), b.add("LayerNormalization", "x",
			"m", attribute("axis", 1)), b.add("Softmax", "x"), b.add("Softmax", "x", attribute("axis", 0)), b.add(
			"LogSoftmax", "y", attribute("axis", -2))}
	},
	"reductions": func(b *builder) (out []string) {
		for _, op := range []string{
			"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp",
		} {
			out = append(out, b.add(op, "x", b.numbers(-1)), b.add(op, "x", b.numbers(2, 0), attribute("keepdims", 0)),
				b.add(op, "x"), b.add(op, "x", attribute("noop_with_empty_axes", 1)))
		}
		return out
	},
	"products": func(b *builder) []string {
		c := b.floats(3)
		return []string{
			b.add("MatMul", "x", "z"), b.add("MatMul", "x", "n"), b.add("MatMul", "m", "z"), b.add("MatMul", "m", "n"),
			b.add("MatMul", "x", b.add("Transpose", "y", list("perm", 0, 2, 1))),
			b.add("MatMul", b.add("Transpose", "x", list("perm", 0, 2, 1)), "y"), b.add("Gemm", "m", "n", c),
			b.add("Gemm", "m", "m", attribute("transB", 1)),
			b.add("Gemm", "m", "n", attribute("transA", 1), attribute("transB", 1)),
			b.add("Gemm", "m", "n", c, float("alpha", 0.5), float("beta", 2)),
			b.add("MatMul", "x", b.add("Transpose", "m")), b.add("MatMul", "x", b.floats(4)),
			b.add("MatMul", b.add("Reshape", "x", b.numbers(6, 4)), "n"),
			b.add("MatMul", b.add("Transpose", "x", list("perm", 1, 0, 2)), b.add("Reshape", "z", b.numbers(1, 4, 6))),
		}
	},
	"views": func(b *builder) []string {
		part := b.add("Split", "x", b.numbers(1, 3), attribute("axis", 2))
		n := b.graph.Node[len(b.graph.Node)-1]
		n.Output = append(n.Output, "rest")
		empty := b.add("Slice", "x", b.numbers(3), b.numbers(3), b.numbers(2))
		return []string{part, "rest", b.add("Transpose", "x"), b.add("Unsqueeze", "x", b.numbers(0, 3)),
			b.add("Squeeze", b.add("Unsqueeze", "y", b.numbers(1)), b.numbers(1)),
			b.add("Flatten", "x"), b.add("Expand", "m", b.numbers(2, 2, 3, 4)), b.add("Tile", "x", b.numbers(1, 3, 2)),
			b.add("Neg", b.add("Tile", b.add("Transpose", "m"), b.numbers(2, 1))), b.add("Tile", "m", b.numbers(1, 1)),
			b.add("Concat", "m", b.add("Tile", "m", b.numbers(0, 1)), attribute("axis", 0)),
			b.add("Slice", "x", b.numbers(-1), b.numbers(math.MinInt64), b.numbers(2), b.numbers(-2)),
			b.add("Slice", "x", b.numbers(1, 0), b.numbers(math.MaxInt64, 1)),
			b.add("Neg", b.add("Slice", "x", b.numbers(2), b.numbers(-5), b.numbers(1), b.numbers(-1))),
			b.add("Concat", "x", b.add("Transpose", "z", list("perm", 0, 2, 1)), attribute("axis", -1)),
			b.add("Pad", "x", b.numbers(1, 0, -1, 0, 2, 1), b.number(7)),
			b.add("Pad", "x", b.numbers(0, -1, 0, 0, 0, 0)),
			b.add("Pad", "x", b.numbers(1, 1), "", b.numbers(2), word("mode", "reflect")),
			b.add("Pad", "m", b.numbers(2, 1), b.number(-1), b.numbers(-1)),
			b.add("Slice", "x", b.numbers(1), b.numbers(3), b.numbers(2)),
			b.add("Concat", b.add("Reshape", "x", b.numbers(4, 6)),
				b.add("Reshape", empty, b.numbers(0, 6), attribute("allowzero", 1)), attribute("axis", 0))}
	},
	"constants": func(b *builder) []string {
		large := &onnxpb.TensorProto{Dims: []int64{6000}, DataType: proto.Int32(int32(f32))}
		for i := range 6000 {
			large.FloatData = append(large.FloatData, float32(i)*1e-3)
		}
		three := &onnxpb.TensorProto{Dims: []int64{1}, DataType: proto.Int32(int32(f32)), FloatData: []float32{3}}
		span := b.add("Cast", b.add("Range", b.number(0), b.number(6000), b.number(1)), to(f32))
		causal := b.add("Less", b.add("Reshape", span, b.numbers(1, 6000)),
			b.add("Slice", b.add("Reshape", span, b.numbers(6000, 1)), b.numbers(0), b.numbers(3), b.numbers(0)))
		b.graph.Initializer = append(b.graph.Initializer, large)
		large.Name = proto.String("large")
		coarse := b.add("Cast", b.add("Cast", b.number(0.3), to(onnxpb.TensorProto_BFLOAT16)), to(f32))
		return []string{b.add("Add", "x", coarse), b.add("Add", "m", b.add("Identity", b.number(3))),
			b.add("Add", "m", b.add("Reshape", b.number(3), b.numbers(1, 1, 1))),
			b.add("Mul", b.add("Slice", "m", b.numbers(0), b.numbers(1), b.numbers(1)),
				b.add("Constant", content("value", large))),
			b.add("Add", b.add("ConstantOfShape", b.numbers(90, 80), content("value", three)),
				b.add("ReduceMax", "x", attribute("keepdims", 0))),
			b.add("Where", causal, b.number(-1e9), "large"), "large", span,
			b.add("Add", "x", b.add("Constant", float("value_float", 0.3))),
			b.add("Add", "m", b.add("Constant",
				content("value", &onnxpb.TensorProto{DataType: proto.Int32(int32(f32)), FloatData: []float32{-2}})))}
	},
	"large integers": func(b *builder) []string {
		const huge = 1<<60 + 1 // no float64 is that
		x, c, d := b.whole("x", i64), b.numbers(huge), b.numbers(7)
		filled := b.add("ConstantOfShape", b.numbers(5000, 1), content("value",
			&onnxpb.TensorProto{Dims: []int64{1}, DataType: proto.Int32(int32(i64)), Int64Data: []int64{huge}}))
		attributed := b.add("Constant", attribute("value_int", huge))
		var out []string
		for _, y := range []string{
			b.add("Add", x, c), b.add("Add", x, b.add("Add", c, d)),
			b.add("Add", x, b.add("Reshape", c, b.numbers(1, 1))),
			b.add("Add", x, b.add("Slice", filled, b.numbers(0), b.numbers(3))), b.add("Add", x, attributed),
		} {
			out = append(out, b.add("Cast", b.add("Mod", y, d), to(f32)))
		}
		return append(out, b.add("Cast", b.add("Add", x, b.add("Mod", c, d)), to(f32)))
	},
	"others": func(b *builder) []string {
		one := b.numbers(1)
		return []string{
			b.add("Gather", b.add("Transpose", "x"), b.numbers(1, 0), attribute("axis", 1)),
			b.add("CumSum", b.add("Exp", "x"), one, attribute("reverse", 1)),
			b.add("Trilu", "x", attribute("upper", 0)),
			b.add("Gather", "m", b.add("Cast", b.add("Greater", "x", "y"), to(i64))),
			b.add("Conv", "x", b.add("Reshape", "z", b.numbers(4, 3, 2))),
			b.add("Cast", b.add("ArgMax", "x", attribute("axis", 0)), to(f32)),
		}
	},
}

// TestForms: ONNX Runtime computes the same from the written model. Each region has a kernel or a reason.
func TestForms(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			b := newForm()
			model := b.outputs(form(b)...)
			rewritten(t, model)
			if _, err := fuse.NewLedger(model, nil, fused.Kernels); err != nil {
				t.Error(err)
			}
		})
	}
}
