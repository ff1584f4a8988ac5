package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// recurrence is a Scan over sequences, forwards.
func recurrence(body *onnxpb.GraphProto, sequences int, in, out []string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String("Scan"), Input: in, Output: out, Attribute: []*onnxpb.AttributeProto{
			attribute("num_scan_inputs", sequences),
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: body},
		},
	}
}

// nestedScan makes up a graph with a Scan whose steps have one of such steps each, which begins with start and reads
// rows: outer steps pass on the sum of what the inner ones end with.
func nestedScan(of, start, rows string) *onnxpb.ModelProto {
	b := &builder{Rand: rand.New(rand.NewPCG(1, 23)), graph: &onnxpb.GraphProto{Name: proto.String("nested")}}
	for name, shape := range map[string][]int{"x": {3, 20, 4}, "starts": {3, 4}, "row": {20, 4}, "same": {4}} {
		b.graph.Input = append(b.graph.Input, info(name, shape))
	}
	b.named("decay", "Sigmoid", "same")

	inner := &steps{&onnxpb.GraphProto{Name: proto.String("inner")}, f32}
	for name, x := range map[string]float32{"one": 1, "zero": 0} {
		inner.graph.Initializer = append(inner.graph.Initializer, &onnxpb.TensorProto{
			Name: proto.String(name), DataType: proto.Int32(int32(f32)), FloatData: []float32{x},
		})
	}
	s, x, y := inner.input("passed"), inner.input("x1"), inner.input("y1")
	for _, name := range []string{liftable[of](inner, s, x, y), inner.add("Identity", s)} {
		inner.graph.Output = append(inner.graph.Output, inner.info(name))
	}
	outer := &steps{&onnxpb.GraphProto{Name: proto.String("outer")}, f32}
	sum := outer.input("sum")
	outer.input("item")
	outer.input("start")
	n := recurrence(inner.graph, 2, []string{start, rows, rows}, []string{"end", "all"})
	outer.graph.Node = append(outer.graph.Node, n, &onnxpb.NodeProto{
		OpType: proto.String("Add"), Input: []string{sum, "end"}, Output: []string{"after"},
	}, &onnxpb.NodeProto{OpType: proto.String("Add"), Input: []string{"all", "item"}, Output: []string{"each"}})
	for _, name := range []string{"after", "each"} {
		outer.graph.Output = append(outer.graph.Output, outer.info(name))
	}
	b.graph.Node = append(b.graph.Node,
		recurrence(outer.graph, 2, []string{"same", "x", "starts"}, []string{"last", "results"}))
	return b.outputs("last", "results")
}

// TestNestedScans: a recurrence in the steps of another one is computed for all of them, whether or not they begin it
// with the same, and have the same items.
func TestNestedScans(t *testing.T) {
	var k kernels
	for _, of := range []string{"gated", "average", "logarithms", "sum"} {
		for _, start := range []string{"same", "start", "sum"} {
			for _, rows := range []string{"item", "row"} {
				t.Run(fmt.Sprint(of, " of ", rows, " from ", start), func(t *testing.T) {
					model := nestedScan(of, start, rows)
					r, g, regions := partition(t, model, shapes.Sizes{})
					want := 0
					if start == "sum" { // what outer steps pass on depends on all that inner ones do
						want = 1
					}
					if left := scansIn(g); left != want {
						t.Errorf("%d recurrences are left, want %d", left, want)
					}
					compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-5)
					m, _ := results(t, model, r, g, regions, batch(r, nil))
					if want == 0 {
						k.add(t, regions, m)
					}
				})
			}
		}
	}
	k.complete(t, 30)
	k.check(t, &emulation{}, 1e-5)
}

// TestIntegerSteps: sums in integers are lifted; a quotient that is rounded, and constants whose sum wraps, are not
// taken for real numbers.
func TestIntegerSteps(t *testing.T) {
	for name, c := range map[string]struct {
		step step
		left int // recurrences
	}{
		"sum": {liftable["sum"], 0},
		"double": {func(g *steps, s, x, _ string) string {
			return g.add("Sub", g.add("Add", g.add("Mul", s, "two"), x), s)
		}, 0},
		"even": {func(g *steps, s, x, _ string) string {
			return g.add("Add", g.add("Mul", g.add("Div", s, "two"), "two"), x)
		}, 1},
		"half": {func(g *steps, s, _, y string) string {
			return g.add("Div", g.add("Add", g.add("Mul", s, "two"), y), "two")
		}, 1},
		"wrapping": {func(g *steps, s, x, _ string) string {
			return g.add("Add", g.add("Add", g.add("Add", s, "large"), "large"), x)
		}, 1},
	} {
		for _, kind := range []onnxpb.TensorProto_DataType{onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64} {
			t.Run(fmt.Sprint(name, kind), func(t *testing.T) {
				b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("integers")}}
				var in []string
				for _, input := range []string{"x", "y"} {
					b.graph.Input = append(b.graph.Input, info(input, []int{30, 4}))
					in = append(in, b.add("Cast", b.add("Mul", input, b.number(9)), to(kind)))
				}
				b.named("two", "Cast", b.number(2), to(kind))
				b.named("large", "Cast", b.number(1.5e9), to(kind))
				start := b.add("ReduceMax", in[0], b.numbers(0), attribute("keepdims", 0))
				g := &steps{&onnxpb.GraphProto{Name: proto.String("step")}, kind}
				s, x, y := g.input("passed"), g.input("item0"), g.input("item1")
				for _, name := range []string{c.step(g, s, x, y), g.add("Identity", s)} {
					g.graph.Output = append(g.graph.Output, g.info(name))
				}
				b.graph.Node = append(b.graph.Node,
					recurrence(g.graph, 2, append([]string{start}, in...), []string{"end", "all"}))
				model := b.outputs(b.add("Cast", "end", to(f32)), b.add("Cast", "all", to(f32)))
				r, lowered, regions := partition(t, model, shapes.Sizes{})
				if left := scansIn(lowered); left != c.left {
					t.Errorf("%d recurrences are left, want %d", left, c.left)
				}
				compare(t, model, r, lowered, regions, batch(r, nil), 1e-6, 0)
			})
		}
	}
}
