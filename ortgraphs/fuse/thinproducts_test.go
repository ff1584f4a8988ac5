package fuse_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestThinProducts: products of many terms and few results are sums, with the results of the exported graph. A library
// computes those whose terms are not beside each other in memory, or whose sides are wide.
func TestThinProducts(t *testing.T) {
	const terms = 1 << 14
	for _, tt := range []struct {
		name          string
		rows, columns int
		turned        bool // the terms are the last dimension of the first operand
		sums          bool
	}{
		{"one row", 1, 16, false, true}, {"one column", 16, 1, false, true}, {"taps", 16, 3, false, true},
		{"taps as rows", 5, 8, false, true}, {"a vector of terms", 1, 16, true, true},
		{"terms last", 16, 3, true, false}, {"whole words", 16, 8, false, false}, {"wide", 16, 13, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &builder{Rand: rand.New(rand.NewPCG(1, 2)), graph: &onnxpb.GraphProto{Name: proto.String("thin")}}
			shape := []int{terms, tt.rows}
			if tt.turned {
				shape = []int{tt.rows, terms}
			}
			b.graph.Input = append(b.graph.Input, info("x", shape), info("y", []int{terms, tt.columns}))
			x := b.add("Sign", "x") // the sums are exact
			if !tt.turned {
				x = b.add("Transpose", x, list("perm", 1, 0))
			}
			model := b.outputs(b.add("Neg", b.add("MatMul", x, b.add("Sign", "y"))))
			_, g, _ := partition(t, model, shapes.Sizes{})
			product := slices.ContainsFunc(g.Nodes, func(n *fuse.Node) bool { return n.Kind == fuse.Product })
			if product == tt.sums {
				t.Errorf("a product is left: %t", product)
			}
			rewritten(t, model)
		})
	}
}

// TestThinProductOfWindows: a convolution that makes few channels is sums over windows, which are in no memory, also if
// the gradient of its weights reads them. Windows that another product reads are in memory in any case, and the library
// computes both products. It also computes products of few windows.
func TestThinProductOfWindows(t *testing.T) {
	const channels, taps = 2, 4
	for _, tt := range []struct {
		name    string
		kind    onnxpb.TensorProto_DataType
		columns int
		turned  bool // the weights have a row for each column of the result
		other   int  // columns of another product of the windows; with 1, it is a gradient of weights
		sums    bool
		few     bool // windows
	}{
		{"one channel", onnxpb.TensorProto_FLOAT, 1, false, 0, true, false},
		{"one channel in bf16", onnxpb.TensorProto_BFLOAT16, 1, true, 0, true, false},
		{"three channels", onnxpb.TensorProto_BFLOAT16, 3, true, 0, true, false},
		{"three columns", onnxpb.TensorProto_FLOAT, 3, false, 0, true, false},
		{"whole words", onnxpb.TensorProto_FLOAT, 8, false, 0, false, false},
		{"another product", onnxpb.TensorProto_FLOAT, 1, false, 16, false, false},
		{"a gradient of weights", onnxpb.TensorProto_FLOAT, 1, false, 1, true, false},
		{"few windows", onnxpb.TensorProto_FLOAT, 1, false, 0, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			positions := 1 << 14
			if tt.few {
				positions--
			}
			b := &builder{Rand: rand.New(rand.NewPCG(1, 2)), graph: &onnxpb.GraphProto{Name: proto.String("windows")}}
			weights := []int{taps * channels, tt.columns}
			if tt.turned {
				slices.Reverse(weights)
			}
			b.graph.Input = append(b.graph.Input, info("x", []int{positions, channels}), info("w", weights),
				info("v", []int{taps * channels, max(1, tt.other)}), info("y", []int{positions, 1}))
			cast := func(name string) string { return b.add("Cast", b.add("Sign", name), to(tt.kind)) }
			x := b.add("Cast", b.add("Pad", b.add("Sign", "x"), b.numbers(1, 0, taps-2, 0)), to(tt.kind))
			var parts []any
			for i := range taps {
				parts = append(parts, b.add("Slice", x, b.numbers(i), b.numbers(i+positions), b.numbers(0)))
			}
			windows := b.add("Concat", append(parts, attribute("axis", 1))...)
			w := cast("w")
			if tt.turned {
				w = b.add("Transpose", w, list("perm", 1, 0))
			}
			wide := func(name string) string { return b.add("Neg", b.add("Cast", name, to(onnxpb.TensorProto_FLOAT))) }
			outputs := []string{wide(b.add("MatMul", windows, w))}
			switch tt.other {
			case 0:
			case 1:
				turned := b.add("Transpose", windows, list("perm", 1, 0))
				outputs = append(outputs, wide(b.add("MatMul", turned, cast("y"))))
			default:
				outputs = append(outputs, wide(b.add("MatMul", windows, cast("v"))))
			}
			model := b.outputs(outputs...)
			_, g, regions := partition(t, model, shapes.Sizes{})
			product := slices.ContainsFunc(g.Nodes, func(n *fuse.Node) bool { return n.Kind == fuse.Product })
			inMemory := slices.ContainsFunc(regions, func(r *fuse.Region) bool {
				return slices.ContainsFunc(r.Out, func(t *fuse.Tensor) bool {
					return t.Elements() == positions*taps*channels
				})
			})
			if product == tt.sums || inMemory == tt.sums {
				t.Errorf("a product is left: %t; windows are in memory: %t", product, inMemory)
			}
			if tt.kind == onnxpb.TensorProto_FLOAT { // ONNX Runtime multiplies no bf16 on a CPU
				rewritten(t, model)
			}
			got, want := computed(t, g, regions), plainly(t, model)
			for i, o := range g.Outputs {
				if !slices.Equal(got[o.Tensor], want[i]) {
					t.Errorf("%s has other bits", o.Name)
				}
			}
		})
	}
}
