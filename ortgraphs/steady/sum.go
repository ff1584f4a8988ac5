package steady

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// sum computes a sum or mean as the library's fast kernels do, with nodes that give the same bits with any number of
// threads: so the bits of a batch with more rows than threads stay what they were. Where the axes do not allow that, it
// moves them to the end.
func (r *rewriter) sum(n *onnxpb.NodeProto, f finding) []*onnxpb.NodeProto {
	if len(n.Input) < 2 { // an old opset
		return r.moved(n, f)
	}
	b := &builder{r: r, n: n, f: f, mean: n.GetOpType() == "ReduceMean"}
	first, last := f.axes[0], f.axes[len(f.axes)-1]
	switch contiguous := int(last-first) == len(f.axes)-1; {
	case contiguous && first > 0 && int(last) < f.rank-1:
		b.inner(first, last+1)
	case !contiguous && first == 0 && int(last) == f.rank-1 && b.outer():
	default:
		return r.moved(n, f)
	}
	return b.nodes
}

// builder makes the nodes in place of a sum.
type builder struct {
	r     *rewriter
	n     *onnxpb.NodeProto
	f     finding
	mean  bool
	nodes []*onnxpb.NodeProto
}

// add adds a node with a new name, and returns the name.
func (b *builder) add(op string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	name := b.r.name(b.n)
	b.nodes = append(b.nodes,
		&onnxpb.NodeProto{OpType: proto.String(op), Input: inputs, Output: []string{name}, Attribute: attributes})
	return name
}

// finish gives the last node the name of the sum.
func (b *builder) finish() { b.nodes[len(b.nodes)-1].Output = b.n.Output[:1] }

func (b *builder) vector(values ...int64) string {
	c := constant(b.r.name(b.n), values)
	b.nodes = append(b.nodes, c)
	return c.Output[0]
}

// sizes returns the sizes of some axes, product their product, as vectors.
func (b *builder) sizes(from, to int64) string {
	return b.add("Shape", b.n.Input[:1], whole("start", from), whole("end", to))
}

func (b *builder) product(from, to int64) string {
	return b.add("ReduceProd", []string{b.sizes(from, to)}, whole("keepdims", 1))
}

// divide divides by the number of elements if the mean is asked for.
func (b *builder) divide(sum string, count func() string) string {
	if !b.mean {
		return sum
	}
	return b.add("Div", []string{sum, b.add("Cast", []string{count()}, whole("to", int64(onnxpb.TensorProto_FLOAT)))})
}

// inner multiplies each matrix by a row of ones.
func (b *builder) inner(from, to int64) {
	rank := int64(b.f.rank)
	lead, count, tail := b.product(0, from), b.product(from, to), b.product(to, rank)
	join := func(parts ...string) string { return b.add("Concat", parts, whole("axis", 0)) }
	matrices := b.add("Reshape", []string{b.n.Input[0], join(lead, count, tail)})
	ones := b.add("ConstantOfShape", []string{join(b.vector(1), count)}, &onnxpb.AttributeProto{
		Name: proto.String("value"), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: &onnxpb.TensorProto{
			DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: []int64{1},
			RawData: binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)),
		},
	})
	sum := b.add("MatMul", []string{ones, matrices})
	shape := []string{b.sizes(0, from)}
	if integer(b.n, "keepdims", 1) != 0 {
		shape = append(shape, b.vector(slices.Repeat([]int64{1}, int(to-from))...))
	}
	// Before the division: the library would make one product of the product and a division of its result.
	b.divide(b.add("Reshape", []string{sum, join(append(shape, b.sizes(to, rank))...)}), func() string { return count })
	b.finish()
}

// outer sums over the last axes and then over the first ones. It reports false if there are others.
func (b *builder) outer() bool {
	cut := 1
	for cut < len(b.f.axes) && b.f.axes[cut] == b.f.axes[cut-1]+1 {
		cut++
	}
	first, last := b.f.axes[:cut], b.f.axes[cut:]
	if int(last[len(last)-1]-last[0]) != len(last)-1 {
		return false
	}
	sum := b.add("ReduceSum", []string{b.n.Input[0], b.vector(last...)}, whole("keepdims", 1))
	sum = b.add("ReduceSum", []string{sum, b.vector(first...)}, whole("keepdims", 1))
	sum = b.divide(sum, func() string {
		both := []string{b.product(0, first[cut-1]+1), b.product(last[0], int64(b.f.rank))}
		return b.add("Mul", both)
	})
	if integer(b.n, "keepdims", 1) == 0 {
		b.add("Squeeze", []string{sum, b.vector(b.f.axes...)})
	}
	b.finish()
	return true
}

func whole(name string, value int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(value),
	}
}
