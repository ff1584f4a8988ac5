package fuse_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

func generate(r *fuse.Region) (*cudac.Kernel, error) { return cudac.Generate(r, cudac.Target{}) }

// withoutDouble are operators of which ONNX Runtime has none in f64 on a CPU.
var withoutDouble = []string{"Cos", "Elu", "Erf", "Gelu", "GeluTanh", "LeakyRelu", "Softplus"}

// doubles makes up a graph of each operator, of reductions and of conversions in f64. One for ONNX Runtime has only
// what that has, and outputs in f32.
func doubles(runtime bool) *onnxpb.ModelProto {
	b := newForm()
	scale := b.add("Cast", b.number(0.7), to(f64))
	x, y := b.add("Mul", b.add("Cast", "x", to(f64)), scale), b.add("Mul", b.add("Cast", "y", to(f64)), scale)
	positive := b.add("Exp", x)
	var out []string
	add := func(name string) {
		if runtime {
			name = b.add("Cast", name, to(f32))
		}
		out = append(out, name)
	}
	for _, op := range slices.Sorted(maps.Keys(operators.Table)) {
		o := operators.Table[op]
		switch {
		case o.DoubleC == "" || o.Of == nil || len(o.ONNX) > 0 || runtime && slices.Contains(withoutDouble, op):
		case slices.Contains([]string{"And", "Or", "Xor", "Mod"}, op):
		case op == "Pow":
			add(b.add(op, positive, y))
			for _, exponent := range []float32{1, 2, 3, 0.5, -0.5, -1} {
				add(b.add(op, positive, b.add("Cast", b.number(exponent), to(f64))))
			}
		case slices.Contains([]string{"Log", "Sqrt", "Reciprocal"}, op):
			add(b.add(op, positive))
		case o.Inputs == 1:
			add(b.add(op, x))
		case o.Result == operators.Boolean:
			add(b.add("Where", b.add(op, x, y), x, scale))
		default:
			add(b.add(op, x, y))
		}
	}
	for _, op := range []string{"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"} {
		for _, axes := range [][]int{{2}, {0, 1}, {0, 1, 2}, {1}} {
			add(b.add(op, x, b.numbers(axes...)))
		}
	}
	for _, t := range []onnxpb.TensorProto_DataType{i32, i64, onnxpb.TensorProto_BOOL, short, f32} {
		narrow := b.add("Cast", b.add("Mul", x, b.add("Cast", b.number(9), to(f64))), to(t))
		add(b.add("Add", b.add("Cast", narrow, to(f64)), y))
	}
	add(b.add("Softmax", x))
	return b.outputs(out...)
}

// doubles adds the regions of graphs in f64.
func (k *kernels) doubles(t *testing.T) {
	t.Helper()
	k.model(t, doubles(false), rand.New(rand.NewPCG(1, 11)).NormFloat64)
}

// TestDoubles: the programs of graphs in f64 have the precision of f64.
func TestDoubles(t *testing.T) {
	var k kernels
	k.doubles(t)
	k.complete(t, 8)
	k.check(t, &emulation{}, 1e-14)
	for _, r := range k.regions {
		for _, out := range r.Out {
			if out.Type == f64 != r.Precise(out) && !slices.ContainsFunc(r.Nodes, func(n *fuse.Node) bool {
				return n.Op == "Cast" && n.Out[0].Type != f64
			}) {
				t.Errorf("%s of %v is precise: %t", out.Name, out.Type, r.Precise(out))
			}
		}
	}
}

// TestDoublesOfRuntime: what ONNX Runtime computes in f64, the regions and the written model compute, too.
func TestDoublesOfRuntime(t *testing.T) {
	model := doubles(true)
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 1e-6)
}

// TestLongColumnsOfDoubles: a sum in f64 over many rows of few columns has no kernel: a block would add all of them.
func TestLongColumnsOfDoubles(t *testing.T) {
	for rows, left := range map[int]bool{500: false, 20000: true} {
		b := newForm()
		b.graph.Input = []*onnxpb.ValueInfoProto{info("x", []int{rows, 40})}
		wide := b.add("Exp", b.add("Cast", "x", to(f64)))
		model := b.outputs(wide, b.add("ReduceSum", wide, b.numbers(0)))
		var k kernels
		k.model(t, model, rand.New(rand.NewPCG(1, 12)).NormFloat64)
		if left != (len(k.left) > 0) {
			t.Errorf("%d rows; left: %v", rows, k.left)
		}
		k.check(t, &emulation{}, 1e-14)
	}
}

// TestNVRTCOfDoubles: NVIDIA's compiler knows the functions in f64 without headers, the sums up to each element, and
// steps that are computed at once.
func TestNVRTCOfDoubles(t *testing.T) {
	c := nvrtctest.Open(t)
	var k kernels
	k.doubles(t)
	k.cumulations(t, true, 10)
	k.cumulations(t, false, 10)
	k.lifted(t, f64, 10)
	k.lifted(t, f32, 10)
	var texts []string
	for _, s := range k.sources {
		texts = append(texts, cudac.Prelude+s.Text)
	}
	compiled, err := c.Compile(t.Context(), nvrtc.Options{Capability: 90, Flags: cudac.Options}, texts)
	if err := errors.Join(append(compiled.Refused, err)...); err != nil {
		t.Error(err)
	}
}
