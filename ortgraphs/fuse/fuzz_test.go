package fuse_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// FuzzLedger partitions random graphs with faults in them. Graphs that shapes accepts must have a ledger or an error,
// and each name of the model that they are written as is defined once.
func FuzzLedger(f *testing.F) {
	for seed := range nightly.Of[uint64](60, 3000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		b := newBuilder(seed)
		for range 1 + b.IntN(6) {
			b.spoil()
		}
		model := b.model()
		if l, err := fuse.NewLedger(model, shapes.Sizes{}, fused.Kernels); err == nil &&
			(l.Fused.Bytes < 0 || l.Exported.Bytes < 0) {
			t.Errorf("%+v", l)
		}
		r, err := shapes.Infer(model, shapes.Sizes{})
		if err != nil {
			return
		}
		g, err := fuse.Lower(r)
		if err != nil {
			return
		}
		regions, err := fuse.VerifiedPartition(g)
		if err != nil {
			t.Error(err)
		}
		if m, err := g.Model(regions, calls); err == nil {
			if err := wellFormed(m); err != nil {
				t.Error(err)
			}
		}
	})
}

// spoil changes one node, one constant or one output.
func (b *builder) spoil() {
	n := b.graph.Node[b.IntN(len(b.graph.Node))]
	switch b.IntN(6) {
	case 0:
		if len(n.Input) > 0 {
			n.Input[b.IntN(len(n.Input))] = ""
		}
	case 1:
		n.Input = n.Input[:b.IntN(len(n.Input)+1)]
	case 2:
		ops := []string{
			"Add", "Where", "Cast", "Clip", "Sum", "LayerNormalization", "ReduceSum", "MatMul", "Gemm", "Reshape",
			"Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile", "ConstantOfShape", "Range", "Slice",
			"Split", "Concat", "Pad", "Softmax", "Gather", "Mod", "Conv",
		}
		n.OpType = proto.String(ops[b.IntN(len(ops))])
	case 3:
		for _, a := range n.Attribute {
			a.I = proto.Int64(int64(b.IntN(9) - 4))
			for i := range a.Ints {
				a.Ints[i] = int64(b.IntN(9) - 4)
			}
		}
	case 4:
		if len(b.graph.Initializer) == 0 {
			return
		}
		c := b.graph.Initializer[b.IntN(len(b.graph.Initializer))]
		if b.IntN(2) == 0 && len(c.Int64Data) > 0 {
			c.Int64Data = [][]int64{c.Int64Data[1:], append(c.Int64Data, 1)}[b.IntN(2)]
			c.Dims = []int64{int64(len(c.Int64Data))}
		}
		for i := range c.Int64Data {
			c.Int64Data[i] = []int64{int64(b.IntN(12) - 4), math.MaxInt64, math.MinInt64}[max(b.IntN(10)-7, 0)]
		}
	case 5:
		n.Input = append(n.Input, b.values[b.IntN(len(b.values))].name)
		n.Output = append(n.Output, "another")
	}
}

// TestMixedTypes: operands of other types than the operator allows are left to ONNX Runtime, which refuses most of
// them. An exponent may have any type.
func TestMixedTypes(t *testing.T) {
	b := newForm()
	one := b.numbers(1)
	whole := b.add("Cast", "x", to(i64))
	nodes := []string{
		b.add("Add", "x", one), b.add("Where", one, "x", "x"), b.add("Less", "x", one), b.add("Clip", "x", one),
		b.add("Concat", "x", whole, attribute("axis", 0)), b.add("MatMul", "x", b.add("Transpose", whole,
			attributes("perm", []int{0, 2, 1})[0])), b.add("Pow", "x", whole), b.add("Pow", whole, b.number(0.5)),
	}
	squares := []string{b.add("Pow", "x", b.numbers(2)), b.add("Pow", whole, b.numbers(2))}
	_, g, _ := partition(t, b.outputs(append(squares, nodes...)...), shapes.Sizes{})
	var left []string
	for _, n := range g.Nodes {
		if n.Kind == fuse.Opaque {
			left = append(left, n.Out[0].Name)
		}
	}
	if slices.Sort(nodes); !slices.Equal(slices.Sorted(slices.Values(left)), nodes) {
		t.Errorf("%v are left to ONNX Runtime, want %v", left, nodes)
	}
	b = newForm()
	model := b.outputs(b.add("Pow", "x", b.numbers(2)))
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 0)
}

// TestNoShape: a graph whose shapes depend on data is refused.
func TestNoShape(t *testing.T) {
	b := &builder{
		Rand:  rand.New(rand.NewPCG(1, 1)),
		graph: &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{info("in0", []int{2, 3})}},
	}
	b.values = []value{{"in0", []int{2, 3}}}
	b.node("NonZero", nil, nil, "in0")
	_, err := fuse.NewLedger(b.model(), nil, fused.Kernels)
	if err == nil || err.Error() != "the node of v0 (NonZero): its shape is not known" {
		t.Errorf("error %v", err)
	}
}
