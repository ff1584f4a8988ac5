package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

const f64 = onnxpb.TensorProto_DOUBLE

// cumulationShapes have axes of all lengths that decide between forms of programs: short and long, innermost and not,
// with few and many places beside them.
var cumulationShapes = [][]int{
	{2, 3}, {5, 40}, {3, 1200}, {2, 7, 5}, {300, 3}, {2, 70, 33}, {2, 3, 17}, {600, 2, 2}, {1, 4100}, {40, 300},
	{9000},
}

// cumulation makes up a graph with a CumSum between elementwise nodes, whose order in memory may be another one.
func cumulation(seed uint64, t onnxpb.TensorProto_DataType) *onnxpb.ModelProto {
	b := &builder{Rand: rand.New(rand.NewPCG(seed, 9)), graph: &onnxpb.GraphProto{Name: proto.String("cumulation")}}
	shape := slices.Clone(cumulationShapes[seed%uint64(len(cumulationShapes))])
	rank := len(shape)
	for _, name := range []string{"x", "y"} {
		b.graph.Input = append(b.graph.Input, info(name, shape))
		b.values = append(b.values, value{name, shape})
	}
	in := b.add("Cast", b.add("Mul", "x", b.number(3)), to(t))
	other := b.add("Cast", "y", to(t))
	axis := b.IntN(rank)
	if b.IntN(3) == 0 {
		perm := b.Perm(rank)
		in = b.add("Transpose", in, attributes("perm", perm)[0])
		other = b.add("Transpose", other, attributes("perm", perm)[0])
	}
	if b.IntN(4) > 0 {
		in = b.add("Add", in, other)
	}
	sums := b.add("CumSum", in, b.numbers(axis-rank*b.IntN(2)), attribute("exclusive", b.IntN(2)),
		attribute("reverse", b.IntN(2)))
	out := []string{b.add("Mul", sums, other)}
	switch b.IntN(3) {
	case 0:
		out = append(out, sums)
	case 1:
		out = append(out, b.add("Add", in, other))
	}
	return b.outputs(out...)
}

// cumulations adds the regions of random graphs with a CumSum.
func (k *kernels) cumulations(t *testing.T, t64 bool, count uint64) {
	t.Helper()
	types := []onnxpb.TensorProto_DataType{f32, i32, i64}
	if t64 {
		types = []onnxpb.TensorProto_DataType{f64}
	}
	for seed := range count {
		for _, kind := range types {
			k.model(t, cumulation(seed, kind), rand.New(rand.NewPCG(seed, 10)).NormFloat64)
		}
	}
}

// TestCumulations: sums of the elements up to each one have kernels, along any axis, with what is computed around them.
func TestCumulations(t *testing.T) {
	count := nightly.Of[uint64](22, 220)
	for _, c := range []struct {
		double bool
		within float64
	}{{false, 2e-7}, {true, 1e-13}} {
		var k kernels
		k.cumulations(t, c.double, count)
		k.complete(t, 20)
		for _, r := range k.regions {
			sums := slices.ContainsFunc(r.Nodes, func(n *fuse.Node) bool { return n.Kind == fuse.Cumulation })
			if sums && len(r.Nodes) < 3 {
				t.Errorf("a region of %s", r.Ops())
			}
		}
		for _, form := range []string{
			"<32, ", "<256, ", "<1024, ", "sums[part][across]", " running = joined(total, before)",
		} {
			has := func(s cudactest.Source) bool { return strings.Contains(s.Text, form) }
			if !slices.ContainsFunc(k.sources, has) {
				t.Errorf("no program has %s", form)
			}
		}
		k.check(t, &emulation{}, c.within)
	}
	var k kernels
	for seed := range count {
		model := cumulation(seed, f32)
		toShort(model)
		for _, n := range model.Graph.Node {
			if n.GetOpType() == "Cast" {
				n.Attribute = []*onnxpb.AttributeProto{to(short)}
			}
		}
		k.model(t, model, rand.New(rand.NewPCG(seed, 10)).NormFloat64)
	}
	k.complete(t, 20)
	k.check(t, &emulation{}, 1e-2)
}

// TestCumulationsOfRuntime: the regions and the written model compute what ONNX Runtime does.
func TestCumulationsOfRuntime(t *testing.T) {
	for seed := range nightly.Of[uint64](20, 200) {
		for _, kind := range []onnxpb.TensorProto_DataType{f32, f64, i32, i64} {
			model := cumulation(seed, kind)
			for i, o := range model.Graph.Output {
				b := &builder{graph: model.Graph}
				model.Graph.Output[i] = info(b.add("Cast", o.GetName(), to(f32)), nil)
			}
			r, g, regions := partition(t, model, shapes.Sizes{})
			compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-6) // ONNX Runtime adds up in f32
			if t.Failed() {
				t.Fatalf("seed %d, %v", seed, kind)
			}
		}
	}
}

// TestSumsInDouble: CumSum in f64 between conversions, as PyTorch's cumsum is exported, has no numbers in f64 in
// memory, and none in its region.
func TestSumsInDouble(t *testing.T) {
	b := newForm()
	wide := b.add("Cast", b.add("Exp", "x"), to(f64))
	sums := b.add("CumSum", b.add("Transpose", wide, attributes("perm", []int{0, 2, 1})[0]), b.numbers(2))
	model := b.outputs(b.add("Log", b.add("Cast", b.add("Transpose", sums, attributes("perm", []int{0, 2, 1})[0]),
		to(f32))))
	r, g, regions := partition(t, model, shapes.Sizes{})
	if len(regions) != 1 {
		t.Errorf("%d regions", len(regions))
	}
	for _, n := range g.Nodes {
		if n.Out[0].Type == f64 {
			t.Errorf("%s is in f64", n.Out[0].Name)
		}
	}
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 0)
}

// TestCumulationsLeft: what no rule knows runs as exported, but not the sum of one element, or of none, which is 0.
func TestCumulationsLeft(t *testing.T) {
	b := newForm()
	axis := b.add("Cast", b.add("ReduceMax", b.add("Mul", "m", b.number(0)), attribute("keepdims", 0)), to(i64))
	one := b.add("Slice", "x", b.numbers(0), b.numbers(1), b.numbers(1))
	sums := []string{
		b.add("CumSum", "x", axis), b.add("CumSum", one, b.numbers(1), attribute("exclusive", 1)),
		b.add("CumSum", one, b.numbers(1)),
	}
	var out []string
	for _, sum := range sums {
		out = append(out, sum, b.add("Exp", sum))
	}
	model := b.outputs(out...)
	r, g, regions := partition(t, model, shapes.Sizes{})
	left := 0
	for _, n := range g.Nodes {
		if n.Kind == fuse.Opaque && n.Op == "CumSum" {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d nodes are left", left)
	}
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 0)
}

// TestScanIsCoalesced: a program adds up neighbouring elements by neighbouring threads, or neighbouring columns.
func TestScanIsCoalesced(t *testing.T) {
	for _, c := range []struct {
		shape []int
		axis  int
		has   string
	}{
		{[]int{16, 448, 256}, 1, "sums[part][across]"}, {[]int{16, 448, 256}, 2, "add_up<32, double>("},
		{[]int{16, 4000}, 1, "add_up<256, double>("}, {[]int{16, 40000}, 1, "add_up<1024, double>("},
		{[]int{4, 16, 200000}, 1, "part = threadIdx.x / 256"},
	} {
		b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("scan"), Input: []*onnxpb.ValueInfoProto{
			info("x", c.shape)}}}
		_, _, regions := partition(t, b.outputs(b.add("CumSum", "x", b.numbers(c.axis))), shapes.Sizes{})
		k, err := generate(regions[0])
		if err != nil || !strings.Contains(k.Source, c.has) {
			t.Error(fmt.Sprint(c, err))
		}
		lines := float64(4*elements(c.shape)) / 128
		if k.Caches.Lines > 2.2*lines {
			t.Errorf("%v along %d: %g lines, of %g", c.shape, c.axis, k.Caches.Lines, 2*lines)
		}
	}
}
