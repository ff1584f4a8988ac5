package fuse_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// convolution is a model as the exporter writes convolutions: of a product's result, transposed, through LeakyRelu and
// Pad, three shifted copies are joined and multiplied with a matrix. The gradient of the copies is added up, shifted
// back.
func convolution() *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("convolution")}}
	const rows, time, channels, margin = 2, 12, 16, 2
	for _, in := range []value{
		{"x", []int{rows * time, 8}}, {"w", []int{8, channels}}, {"v", []int{3 * channels, channels}},
	} {
		b.graph.Input = append(b.graph.Input, info(in.name, in.shape))
	}
	last := func() string { return b.values[len(b.values)-1].name }
	slice := func(x string, axis, start, end int, shape []int) {
		b.node("Slice", shape, nil, x, b.numbers(start), b.numbers(end), b.numbers(axis))
	}
	b.node("MatMul", []int{rows * time, channels}, nil, "x", "w")
	b.node("Reshape", []int{rows, time, channels}, nil, last(), b.numbers(rows, time, channels))
	b.node("Transpose", []int{rows, channels, time}, attributes("perm", []int{0, 2, 1}), last())
	b.node("LeakyRelu", []int{rows, channels, time}, nil, last())
	b.node("Pad", []int{rows, channels, time + 2*margin}, nil, last(), b.numbers(0, 0, margin, 0, 0, margin))
	padded := last()
	var parts []string
	for i := range 3 {
		slice(padded, 2, i*margin, i*margin+time, []int{rows, channels, time})
		parts = append(parts, last())
	}
	b.node("Concat", []int{rows, 3 * channels, time}, []*onnxpb.AttributeProto{attribute("axis", 1)}, parts...)
	b.node("Transpose", []int{rows, time, 3 * channels}, attributes("perm", []int{0, 2, 1}), last())
	b.node("Reshape", []int{rows * time, 3 * channels}, nil, last(), b.numbers(rows*time, 3*channels))
	b.node("MatMul", []int{rows * time, channels}, nil, last(), "v")
	b.graph.Output = append(b.graph.Output, info(last(), nil))
	joined := last()
	b.node("Transpose", []int{channels, 3 * channels}, attributes("perm", []int{1, 0}), "v")
	b.node("MatMul", []int{rows * time, 3 * channels}, nil, joined, last())
	b.node("Reshape", []int{rows, time, 3 * channels}, nil, last(), b.numbers(rows, time, 3*channels))
	b.node("Transpose", []int{rows, 3 * channels, time}, attributes("perm", []int{0, 2, 1}), last())
	gradient, sum := last(), ""
	for i := range 3 {
		slice(gradient, 1, i*channels, (i+1)*channels, []int{rows, channels, time})
		b.node("Pad", []int{rows, channels, time + 2*margin}, nil, last(),
			b.numbers(0, 0, i*margin, 0, 0, (2-i)*margin))
		if i > 0 {
			b.node("Add", []int{rows, channels, time + 2*margin}, nil, sum, last())
		}
		sum = last()
	}
	b.node("ReduceSum", []int{1, channels, 1}, nil, sum, b.numbers(0, 2))
	b.graph.Output = append(b.graph.Output, info(last(), nil))
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

// TestConvolution: a convolution is one region before its product, and one after the product of its gradient. They read
// and write only what the products do.
func TestConvolution(t *testing.T) {
	model := convolution()
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-5)
	var ops []string
	for _, r := range regions {
		ops = append(ops, r.Ops())
		for _, in := range r.In {
			if in.From != nil && in.From.Kind != fuse.Product {
				t.Errorf("the region %s reads %s from memory", r.Ops(), in.Name)
			}
		}
	}
	if want := []string{"LeakyRelu, Pad, Windows", "Pad 3, Add 2, sum"}; !slices.Equal(ops, want) {
		t.Errorf("regions %q, want %q", ops, want)
	}
	kernelsOf(t, model, r, g, regions)
}

// TestJoinedWindows: windows are computed where a Concat or a Pad reads them, also where those join other elements
// along the axis of the windows, so that an index before the first window is no window's.
func TestJoinedWindows(t *testing.T) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("windows")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{4, 6}))
	last := func() string { return b.values[len(b.values)-1].name }
	b.node("Pad", []int{4, 9}, nil, "x", b.numbers(0, 1, 0, 2))
	padded := last()
	var parts []string
	for i := range 3 {
		b.node("Slice", []int{4, 3}, nil, padded, b.numbers(i), b.numbers(i+6), b.numbers(1), b.numbers(2))
		parts = append(parts, last())
	}
	b.node("Concat", []int{12, 3}, []*onnxpb.AttributeProto{attribute("axis", 0)}, parts...)
	windows := last()
	b.node("Concat", []int{24, 3}, []*onnxpb.AttributeProto{attribute("axis", 0)}, windows, windows)
	b.node("Tanh", []int{24, 3}, nil, last())
	b.graph.Output = append(b.graph.Output, info(last(), nil))
	b.node("Reshape", []int{6, 2, 3}, nil, windows, b.numbers(6, 2, 3))
	b.node("Pad", []int{6, 5, 3}, nil, last(), b.numbers(0, 2, 0, 0, 1, 0))
	b.node("Sigmoid", []int{6, 5, 3}, nil, last())
	b.graph.Output = append(b.graph.Output, info(last(), nil))
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
	r, g, regions := partition(t, model, shapes.Sizes{})
	if want := "Pad 2, Windows 2, Concat, Tanh"; len(regions) != 2 || regions[0].Ops() != want {
		t.Errorf("regions %v, want two, the first %s", regions, want)
	}
	kernelsOf(t, model, r, g, regions)
}

// kernelsOf checks that every region has a kernel, which computes what the interpreter computes.
func kernelsOf(t *testing.T, model *onnxpb.ModelProto, r *shapes.Result, g *fuse.Graph, regions []*fuse.Region) {
	t.Helper()
	var k kernels
	m, _ := results(t, model, r, g, regions, batch(r, nil))
	k.add(t, regions, m)
	if len(k.left) > 0 {
		t.Errorf("no kernels: %v", k.left)
	}
	k.check(t, &emulation{}, 2e-6)
}

// TestSplitReductions: sums over the innermost dimension and others, and over long rows, begin in the region that
// computes the rows.
func TestSplitReductions(t *testing.T) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("sums")}}
	shape := []int{2, 3, 40, 160}
	b.graph.Input = append(b.graph.Input, info("x", shape))
	b.node("Exp", shape, nil, "x")
	for _, axes := range [][]int{{0, 3}, {0, 2, 3}, {2, 3}, {0, 1, 2, 3}} {
		b.node("ReduceSum", nil, nil, "v0", b.numbers(axes...))
		b.graph.Output = append(b.graph.Output, info(b.values[len(b.values)-1].name, nil))
	}
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-5)
	for _, region := range regions {
		for _, in := range region.In {
			if in.Elements() == elements(shape) && in.Name != "x" {
				t.Errorf("the region %s reads %s from memory", region.Ops(), in.Name)
			}
		}
	}
	kernelsOf(t, model, r, g, regions)
}

// TestWholeColumns: where rows are so wide that the blocks which add all rows fill a GPU, no partial sums are left, for
// few rows and for more than a block has. Nor are they where one block has all rows anyway. Sums of narrower rows are
// left in parts, also of columns that no vector divides.
func TestWholeColumns(t *testing.T) {
	for _, c := range []struct {
		shape []int
		whole bool
	}{
		{[]int{3, 132, 128}, true}, {[]int{70, 132, 128}, true}, {[]int{30, 5, 128}, false},
		{[]int{3, 5, 128}, true}, {[]int{40, 13, 7}, false},
	} {
		b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("columns")}}
		b.graph.Input = append(b.graph.Input, info("x", c.shape))
		b.node("Exp", c.shape, nil, "x")
		b.graph.Output = append(b.graph.Output, info("v0", nil))
		for _, op := range []string{"ReduceSum", "ReduceMax"} {
			b.node(op, nil, nil, "v0", b.numbers(0))
			b.graph.Output = append(b.graph.Output, info(b.values[len(b.values)-1].name, nil))
		}
		model := &onnxpb.ModelProto{
			IrVersion: proto.Int64(9), Graph: b.graph,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		}
		r, g, regions := partition(t, model, shapes.Sizes{})
		for _, region := range regions {
			k, err := cudac.Generate(region, cudac.Target{})
			if err != nil {
				t.Fatal(err)
			}
			if whole := k.PartialsLength == 0; whole != c.whole {
				t.Errorf("%v: %d partial sums", c.shape, k.PartialsLength)
			}
		}
		kernelsOf(t, model, r, g, regions)
	}
}
