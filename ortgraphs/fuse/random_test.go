package fuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// builder makes up a model of f32 tensors.
type builder struct {
	*rand.Rand
	graph  *onnxpb.GraphProto
	values []value
	most   int // elements of a value
}

type value struct {
	name  string
	shape []int
}

// TestRandomGraphs: whatever is composed of the operators that rules know, the regions compute what ONNX Runtime
// computes.
func TestRandomGraphs(t *testing.T) {
	for seed := range nightly.Of[uint64](12, 400) {
		b := newBuilder(seed)
		model := b.model()
		r, g, regions := partition(t, model, shapes.Sizes{})
		compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-5)
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, b.graph.Node)
		}
	}
}

// newBuilder makes up a graph of small values.
func newBuilder(seed uint64) *builder { return buildOf(seed, []int{2, 3, 4, 6}, math.MaxInt) }

// newWideBuilder makes up a graph of values with long rows or large squares.
func newWideBuilder(seed uint64) *builder {
	r := rand.New(rand.NewPCG(seed, 8))
	shape := []int{1 + r.IntN(3), 2, []int{16, 20, 33, 64}[r.IntN(4)], []int{16, 24, 40, 64, 65}[r.IntN(5)]}
	if seed%4 == 0 {
		shape = []int{1, 2, 3, []int{1028, 1100, 1536, 2050}[r.IntN(4)]}
	}
	return buildOf(seed, shape, 12_000)
}

func buildOf(seed uint64, dimensions []int, most int) *builder {
	b := &builder{
		Rand: rand.New(rand.NewPCG(seed, 7)), graph: &onnxpb.GraphProto{Name: proto.String("random")}, most: most,
	}
	for i := range 3 {
		shape := dimensions[b.IntN(3):]
		name := fmt.Sprintf("in%d", i)
		b.graph.Input = append(b.graph.Input, info(name, shape))
		b.values = append(b.values, value{name, shape})
	}
	for range 25 {
		b.step()
	}
	return b
}

// model has the last values as outputs.
func (b *builder) model() *onnxpb.ModelProto {
	for _, v := range b.values[max(len(b.values)-4, 0):] {
		b.graph.Output = append(b.graph.Output, info(v.name, nil))
	}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

func info(name string, shape []int) *onnxpb.ValueInfoProto {
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT))}
	if shape != nil {
		tensor.Shape = &onnxpb.TensorShapeProto{}
		for _, d := range shape {
			tensor.Shape.Dim = append(tensor.Shape.Dim, &onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)},
			})
		}
	}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
	}
}

// node adds a node with one output.
func (b *builder) node(op string, shape []int, attributes []*onnxpb.AttributeProto, in ...string) {
	name := fmt.Sprintf("v%d", len(b.graph.Node))
	b.graph.Node = append(b.graph.Node,
		&onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{name}, Attribute: attributes})
	b.values = append(b.values, value{name, shape})
}

// numbers adds a constant list of integers.
func (b *builder) numbers(list ...int) string {
	name := fmt.Sprintf("c%d", len(b.graph.Initializer))
	t := &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)),
		Dims: []int64{int64(len(list))},
	}
	for _, x := range list {
		t.Int64Data = append(t.Int64Data, int64(x))
	}
	b.graph.Initializer = append(b.graph.Initializer, t)
	return name
}

func attribute(name string, i int) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(i)),
	}
}

func attributes(name string, list []int) []*onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum()}
	for _, i := range list {
		a.Ints = append(a.Ints, int64(i))
	}
	return []*onnxpb.AttributeProto{a}
}

// pick returns a value, mostly one of the last ones.
func (b *builder) pick() value {
	n := len(b.values)
	if b.IntN(3) > 0 {
		return b.values[n-1-b.IntN(min(n, 4))]
	}
	return b.values[b.IntN(n)]
}

// like returns another value with the same shape or one that is broadcast to it.
func (b *builder) like(v value) value {
	fits := slices.DeleteFunc(slices.Clone(b.values), func(w value) bool {
		if len(w.shape) > len(v.shape) {
			return true
		}
		for i, d := range w.shape {
			if d != 1 && d != v.shape[i+len(v.shape)-len(w.shape)] {
				return true
			}
		}
		return false
	})
	return fits[b.IntN(len(fits))]
}

// step adds a node of a random operator that fits one of the values.
func (b *builder) step() {
	v := b.pick()
	if elements(v.shape) > b.most/2 {
		v = b.values[b.IntN(3)]
	}
	rank := len(v.shape)
	axis := b.IntN(max(rank, 1))
	switch op := b.IntN(16); {
	case op < 4:
		b.node([]string{"Add", "Sub", "Mul", "Max"}[op], v.shape, nil, v.name, b.like(v).name)
	case op == 4:
		b.node([]string{"Tanh", "Sigmoid", "Neg", "Abs", "Gelu", "Relu"}[b.IntN(6)], v.shape, nil, v.name)
	case op == 5 && rank > 0:
		shape := slices.Clone(v.shape)
		shape[axis] = 1
		keep := b.IntN(2)
		if keep == 0 {
			shape = slices.Delete(shape, axis, axis+1)
		}
		b.node([]string{"ReduceSum", "ReduceMean", "ReduceMax"}[b.IntN(3)], shape,
			[]*onnxpb.AttributeProto{attribute("keepdims", keep)}, v.name, b.numbers(axis))
	case op == 6 && rank > 1:
		perm := b.Perm(rank)
		shape := make([]int, rank)
		for i, j := range perm {
			shape[i] = v.shape[j]
		}
		b.node("Transpose", shape, attributes("perm", perm), v.name)
	case op == 7:
		b.reshape(v)
	case op == 8 && rank > 0 && v.shape[axis] > 1:
		shape := slices.Clone(v.shape)
		start := b.IntN(v.shape[axis] - 1)
		shape[axis] = v.shape[axis] - start - 1
		b.node("Slice", shape, nil, v.name, b.numbers(start), b.numbers(v.shape[axis]-1), b.numbers(axis))
	case op == 9 && rank > 0:
		shape := slices.Clone(v.shape)
		shape[axis] *= 2
		b.node("Concat", shape, []*onnxpb.AttributeProto{attribute("axis", axis)}, v.name, v.name)
	case op == 10 && rank > 0:
		shape, pads := slices.Clone(v.shape), make([]int, 2*rank)
		pads[axis], pads[axis+rank] = b.IntN(3), b.IntN(2)
		shape[axis] += pads[axis] + pads[axis+rank]
		b.node("Pad", shape, nil, v.name, b.numbers(pads...))
	case op == 11 && rank > 0:
		b.node([]string{"Softmax", "LogSoftmax"}[b.IntN(2)], v.shape, []*onnxpb.AttributeProto{attribute("axis", axis)},
			v.name)
	case op == 12 && rank > 1 && v.shape[rank-2] <= 64: // x times its own transpose
		perm := slices.Collect(func(yield func(int) bool) {
			for i := range rank {
				if !yield(i) {
					return
				}
			}
		})
		perm[rank-1], perm[rank-2] = rank-2, rank-1
		shape := slices.Clone(v.shape)
		shape[rank-1], shape[rank-2] = v.shape[rank-2], v.shape[rank-1]
		b.node("Transpose", shape, attributes("perm", perm), v.name)
		square := slices.Clone(v.shape)
		square[rank-1] = v.shape[rank-2]
		b.node("MatMul", square, nil, v.name, b.values[len(b.values)-1].name)
	case op == 15 && rank > 0:
		b.tile(v, axis, b.IntN(rank))
	case op == 14 && rank > 1:
		b.windows(v, axis, b.IntN(rank))
	case op == 13 && rank > 1 && v.shape[rank-1]%2 == 0:
		b.halves(v)
	}
}

// tile repeats v along some axes.
func (b *builder) tile(v value, axes ...int) {
	shape, repeats := slices.Clone(v.shape), slices.Repeat([]int{1}, len(v.shape))
	for _, a := range axes {
		repeats[a] = 1 + b.IntN(3)
	}
	for i := range shape {
		shape[i] *= repeats[i]
	}
	b.node("Tile", shape, nil, v.name, b.numbers(repeats...))
}

// halves takes the halves of v + bias, as of merged queries and keys.
func (b *builder) halves(v value) {
	rank := len(v.shape)
	columns := v.shape[rank-1]
	b.node("Add", v.shape, nil, v.name, b.floats(columns))
	sum := b.values[len(b.values)-1]
	half := slices.Clone(v.shape)
	half[rank-1] /= 2
	b.node("Slice", half, nil, sum.name, b.numbers(columns/2), b.numbers(columns), b.numbers(rank-1))
	b.node("Slice", half, nil, sum.name, b.numbers(0), b.numbers(columns/2), b.numbers(rank-1))
}

// windows joins shifted copies of v between zeros, as a convolution does.
func (b *builder) windows(v value, axis, along int) {
	parts, distance, step := 2+b.IntN(3), 1+b.IntN(2), 1+b.IntN(2)
	shape, pads := slices.Clone(v.shape), make([]int, 2*len(v.shape))
	pads[along], pads[along+len(shape)] = b.IntN(3), distance*parts
	shape[along] += pads[along] + pads[along+len(shape)]
	b.node("Pad", shape, nil, v.name, b.numbers(pads...))
	padded := b.values[len(b.values)-1].name
	part := slices.Clone(v.shape)
	part[along] = (v.shape[along] + step - 1) / step
	var names []string
	for i := range parts {
		b.node("Slice", part, nil, padded, b.numbers(i*distance), b.numbers(i*distance+v.shape[along]),
			b.numbers(along), b.numbers(step))
		names = append(names, b.values[len(b.values)-1].name)
	}
	whole := slices.Clone(part)
	whole[axis] *= parts
	b.node("Concat", whole, []*onnxpb.AttributeProto{attribute("axis", axis)}, names...)
}

// floats adds a constant list of numbers.
func (b *builder) floats(n int) string {
	name := b.numbers(make([]int, n)...)
	t := b.graph.Initializer[len(b.graph.Initializer)-1]
	t.DataType, t.Int64Data = proto.Int32(int32(onnxpb.TensorProto_FLOAT)), nil
	for range n {
		t.FloatData = append(t.FloatData, float32(b.NormFloat64()))
	}
	return name
}

// reshape joins two neighbouring dimensions, divides one, or adds one of size 1.
func (b *builder) reshape(v value) {
	shape := slices.Clone(v.shape)
	if len(shape) == 0 {
		shape = []int{1}
	}
	at := b.IntN(len(shape))
	switch {
	case b.IntN(2) == 0 && at+1 < len(shape):
		shape[at] *= shape[at+1]
		shape = slices.Delete(shape, at+1, at+2)
	case shape[at]%2 == 0:
		shape[at] /= 2
		shape = slices.Insert(shape, at+b.IntN(2), 2)
	default:
		shape = slices.Insert(shape, at, 1)
	}
	b.node("Reshape", shape, nil, v.name, b.numbers(shape...))
}
