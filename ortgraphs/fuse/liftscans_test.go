package fuse_test

import (
	"fmt"
	"math"
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

// steps makes up the step of a Scan.
type steps struct {
	graph *onnxpb.GraphProto
	kind  onnxpb.TensorProto_DataType
}

func (s *steps) info(name string) *onnxpb.ValueInfoProto {
	v := info(name, nil)
	v.Type.GetTensorType().ElemType = proto.Int32(int32(s.kind))
	return v
}

func (s *steps) input(name string) string {
	s.graph.Input = append(s.graph.Input, s.info(name))
	return name
}

func (s *steps) add(op string, in ...string) string {
	out := fmt.Sprintf("step%d", len(s.graph.Node))
	s.graph.Node = append(s.graph.Node, &onnxpb.NodeProto{
		OpType: proto.String(op), Input: in, Output: []string{out},
	})
	return out
}

// step is what a step passes on, of what it is passed, s, of items x and y, and of constants of the graph around it:
// decay, one and zero.
type step func(g *steps, s, x, y string) string

// larger is the sum of s and x in logarithms, with the difference of equal ones as given.
func larger(g *steps, s, x, apart string) string {
	power := g.add("Exp", g.add("Neg", g.add("Abs", apart)))
	return g.add("Add", g.add("Max", s, x), g.add("Log", g.add("Add", power, "one")))
}

// liftable are steps that need not run one after another.
var liftable = map[string]step{
	"gated": func(g *steps, s, x, y string) string { return g.add("Add", g.add("Mul", s, g.add("Sigmoid", x)), y) },
	"average": func(g *steps, s, x, _ string) string {
		return g.add("Add", s, g.add("Mul", "decay", g.add("Sub", x, s)))
	},
	"reset": func(g *steps, s, x, y string) string {
		return g.add("Where", g.add("Greater", x, "one"), y, g.add("Mul", "decay", g.add("Identity", s)))
	},
	"alternating": func(g *steps, s, x, y string) string {
		return g.add("Sub", y, g.add("Div", g.add("Sub", g.add("Neg", s), y), g.add("Add", g.add("Exp", x), "one")))
	},
	"sum":   func(g *steps, s, x, y string) string { return g.add("Add", g.add("Mul", x, y), s) },
	"last":  func(g *steps, _, x, y string) string { return g.add("Mul", x, y) },
	"first": func(g *steps, s, _, _ string) string { return g.add("Identity", s) },
	"logarithms": func(g *steps, s, x, _ string) string {
		return larger(g, s, x, g.add("Where", g.add("Equal", s, x), "zero", g.add("Sub", s, x)))
	},
	"finite logarithms": func(g *steps, s, x, _ string) string { return larger(g, s, x, g.add("Sub", x, s)) },
}

// serial are steps that run one after another.
var serial = map[string]step{
	"of a function": func(g *steps, s, x, _ string) string { return g.add("Add", g.add("Tanh", s), x) },
	"of a square":   func(g *steps, s, x, _ string) string { return g.add("Add", g.add("Mul", s, s), x) },
	"of a quotient": func(g *steps, s, x, _ string) string { return g.add("Div", x, s) },
	"of a choice":   func(g *steps, s, x, y string) string { return g.add("Where", g.add("Less", s, x), x, y) },
	"of another difference": func(g *steps, s, x, y string) string {
		return larger(g, s, x, g.add("Sub", s, y))
	},
	"of another constant": func(g *steps, s, x, _ string) string {
		return larger(g, s, x, g.add("Where", g.add("Equal", s, x), "one", g.add("Sub", s, x)))
	},
	"of the smaller one": func(g *steps, s, x, _ string) string {
		power := g.add("Exp", g.add("Neg", g.add("Abs", g.add("Sub", s, x))))
		return g.add("Add", g.add("Min", s, x), g.add("Log", g.add("Add", power, "one")))
	},
}

// scanOf makes up a graph with a Scan of such steps, each of which reads what the one before it is passed, along any
// axis and in any direction, between elementwise nodes.
func scanOf(seed uint64, t onnxpb.TensorProto_DataType, names []string, of map[string]step) *onnxpb.ModelProto {
	b := &builder{Rand: rand.New(rand.NewPCG(seed, 21)), graph: &onnxpb.GraphProto{Name: proto.String("lifted")}}
	shape := cumulationShapes[seed%uint64(len(cumulationShapes))]
	perm := []int{b.IntN(len(shape))}
	for i := range shape {
		if i != perm[0] {
			perm = append(perm, i)
		}
	}
	var in []string
	for _, name := range []string{"x", "y"} {
		b.graph.Input = append(b.graph.Input, info(name, shape))
		b.values = append(b.values, value{name, shape})
		in = append(in, b.add("Transpose", b.add("Cast", name, to(t)), list("perm", perm...)))
	}
	b.named("one", "Cast", b.number(1), to(t))
	b.named("zero", "Cast", b.number(0), to(t))
	nothing := b.add("Cast", b.number(float32(math.Inf(-1))), to(t))
	mean := b.add("ReduceMean", in[1], b.numbers(0), attribute("keepdims", 0))
	b.named("decay", "Sigmoid", mean)
	var starts []string
	for _, name := range names {
		start := []string{mean, b.add("Mul", mean, "zero"), "decay"}[b.IntN(3)]
		if name == "logarithms" {
			start = b.add("Add", b.add("Mul", mean, "zero"), nothing)
		}
		starts = append(starts, start)
	}
	if len(names) == 1 && names[0] == "logarithms" { // others would make infinities no numbers
		in[0] = b.add("Where", b.add("Greater", in[0], "zero"), nothing, in[0])
	}
	scan := b.scanning(stepsOf(t, names, of), append(starts, in...))
	b.graph.Node = append(b.graph.Node, scan)

	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	all, out := scan.Output[len(names):], slices.Clone(scan.Output[:len(names)])
	switch b.IntN(3) {
	case 0:
		out = append(out, b.add("Transpose", all[0], list("perm", back...)))
	case 1:
		out = append(out, b.add("Add", b.add("Transpose", all[1], list("perm", back...)), b.add("Cast", "y", to(t))))
	default:
		out = append(out, all...)
	}
	return b.outputs(out...)
}

// named adds a node whose output has a name.
func (b *builder) named(name, op string, args ...any) {
	b.add(op, args...)
	b.graph.Node[len(b.graph.Node)-1].Output = []string{name}
}

// stepsOf is a step that passes on as many values as there are names. Its results are what it is passed and passes on
// of the last one.
func stepsOf(t onnxpb.TensorProto_DataType, names []string, of map[string]step) *onnxpb.GraphProto {
	g := &steps{&onnxpb.GraphProto{Name: proto.String("step")}, t}
	var passed, next []string
	for i := range names {
		passed = append(passed, g.input(fmt.Sprintf("passed%d", i)))
	}
	x, y := g.input("item0"), g.input("item1")
	for i, name := range names {
		next = append(next, of[name](g, passed[i], x, y))
		if name != "logarithms" && name != "finite logarithms" {
			y = g.add("Identity", passed[i])
		}
	}
	last := len(names) - 1
	for _, name := range append(slices.Clone(next), g.add("Identity", passed[last]), g.add("Identity", next[last])) {
		g.graph.Output = append(g.graph.Output, g.info(name))
	}
	return g.graph
}

// scanning is a Scan over two sequences in any directions.
func (b *builder) scanning(body *onnxpb.GraphProto, in []string) *onnxpb.NodeProto {
	directions := []int{b.IntN(2), b.IntN(2)}
	if b.IntN(2) == 0 {
		directions[1] = directions[0]
	}
	n := &onnxpb.NodeProto{
		OpType: proto.String("Scan"), Input: in, Attribute: []*onnxpb.AttributeProto{
			attribute("num_scan_inputs", 2), list("scan_input_directions", directions...),
			list("scan_output_directions", directions[0], b.IntN(2)),
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: body},
		},
	}
	for i := range body.Output {
		n.Output = append(n.Output, fmt.Sprintf("result%d", i))
	}
	return n
}

// chosen are names of steps, of one value that is passed on or of several.
func chosen(seed uint64, of map[string]step) []string {
	r, names := rand.New(rand.NewPCG(seed, 22)), []string{}
	all := make([]string, 0, len(of))
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	for range 1 + r.IntN(3)*r.IntN(2) {
		names = append(names, all[r.IntN(len(all))])
	}
	return names
}

// scansIn counts the Scans that are left.
func scansIn(g *fuse.Graph) (count int) {
	for _, n := range g.Nodes {
		if n.Op == "Scan" {
			count++
		}
	}
	return count
}

// lifted adds the regions of random graphs with recurrences that are computed at once.
func (k *kernels) lifted(t *testing.T, kind onnxpb.TensorProto_DataType, count uint64) {
	t.Helper()
	for seed := range count {
		k.model(t, scanOf(seed, kind, chosen(seed, liftable), liftable), rand.New(rand.NewPCG(seed, 10)).NormFloat64)
	}
}

// TestLiftedScans: recurrences whose steps are affine functions of what they are passed, or sums in logarithms, have
// kernels that compute all steps at once, in all forms of programs.
func TestLiftedScans(t *testing.T) {
	count := nightly.Of[uint64](66, 660)
	for _, c := range []struct {
		kind   onnxpb.TensorProto_DataType
		name   string
		within float64
	}{{f32, "float", 2e-5}, {f64, "double", 1e-13}} {
		var k kernels
		k.lifted(t, c.kind, count)
		k.complete(t, 60)
		for _, sum := range []string{"affine", "logarithmic<" + c.name + ">"} {
			for _, form := range []string{"add_up<32, %s>", "%s sums["} {
				has := func(s cudactest.Source) bool { return strings.Contains(s.Text, fmt.Sprintf(form, sum)) }
				if !slices.ContainsFunc(k.sources, has) {
					t.Errorf("%s: no program has "+form, c.name, sum)
				}
			}
		}
		for _, op := range []string{"CumSum", "sum"} { // of a value to which each step adds
			has := func(n *fuse.Node) bool { return n.Op == op }
			if !slices.ContainsFunc(k.regions, func(r *fuse.Region) bool { return slices.ContainsFunc(r.Nodes, has) }) {
				t.Errorf("no region has a %s", op)
			}
		}
		k.check(t, &emulation{}, c.within) // slopes next to 1 multiply roundings
	}
}

// TestLiftedScansOfRuntime: the regions and the written model compute what ONNX Runtime does, step by step, but for
// four times what ONNX Runtime rounds itself: slopes next to 1 multiply roundings.
func TestLiftedScansOfRuntime(t *testing.T) {
	for seed := range nightly.Of[uint64](60, 600) {
		names := chosen(seed, liftable)
		run := func(kind onnxpb.TensorProto_DataType) (*onnxpb.ModelProto, *shapes.Result, map[string][]float64) {
			model := scanOf(seed, kind, names, liftable)
			for i, o := range model.Graph.Output {
				b := &builder{graph: model.Graph}
				model.Graph.Output[i] = info(b.add("Cast", o.GetName(), to(f32)), nil)
			}
			r, err := shapes.Infer(model, nil)
			if err != nil {
				t.Fatal(err)
			}
			return model, r, runModel(t, model, r, nil, batch(r, nil))
		}
		_, _, exact := run(f64)
		for _, kind := range []onnxpb.TensorProto_DataType{f32, f64} {
			model, _, own := run(kind)
			within := 1e-5
			for name, x := range exact {
				if rounded, norm := distance(own[name], x); norm > 0 && !math.IsInf(norm, 1) {
					within = max(within, 4*rounded/norm)
				}
			}
			r, g, regions := partition(t, model, shapes.Sizes{})
			if left := scansIn(g); left > 0 {
				t.Errorf("%v: a recurrence is left", names)
			}
			compare(t, model, r, g, regions, batch(r, nil), within, 1e-5)
			if t.Failed() {
				t.Fatalf("seed %d, %v: %v", seed, kind, names)
			}
		}
	}
}

// TestSerialScans: other recurrences stay what they are.
func TestSerialScans(t *testing.T) {
	for name := range serial {
		model := scanOf(3, f32, []string{name}, serial)
		if _, g, _ := partition(t, model, shapes.Sizes{}); scansIn(g) != 1 {
			t.Errorf("a step %s need not run after the one before", name)
		}
	}
}

// TestScannedLayers: a minimal GRU in logarithms and a moving average with weights of its own, as the exporter writes
// them, and their gradients need no step after another one, and compute what ONNX Runtime computes.
func TestScannedLayers(t *testing.T) {
	sizes := shapes.Sizes{"B": 3, "T_mel": 40, "T_wav": 256 * 39}
	model := load(t, "../testdata/layers/scanned.onnx")
	r, g, regions := partition(t, model, sizes)
	count := map[string]int{}
	for _, n := range g.Nodes {
		count[n.Op]++
	}
	if count["Scan"] > 0 || count[fuse.LogAddExp] != 1 || count[fuse.Affine] != 3 {
		t.Errorf("%d recurrences are left, %d sums in logarithms, %d affine functions", count["Scan"],
			count[fuse.LogAddExp], count[fuse.Affine])
	}
	compare(t, model, r, g, regions, batch(r, sizes), 3e-5, 0)
	m, _ := results(t, model, r, g, regions, batch(r, sizes))
	var k kernels
	k.add(t, regions, m)
	k.complete(t, 15)
	k.check(t, &emulation{}, 1e-5)
}
