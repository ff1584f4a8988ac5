package fuse_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestDerive: a region after a product computes normalized values again if that reads no more than the values
// themselves. What they are computed from is in memory if a product reads it; otherwise there are only its two terms,
// which are twice as large.
func TestDerive(t *testing.T) {
	for _, tt := range []struct {
		name    string
		product bool
	}{{"its input is in memory", true}, {"its terms are twice as large", false}} {
		t.Run(tt.name, func(t *testing.T) {
			b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("derive")}}
			shape, weights := []int{6, 16}, []int{16, 16}
			b.graph.Input = append(b.graph.Input, info("x", shape), info("y", shape), info("w", weights))
			relu := func(name string) string { return b.add("Relu", b.add("MatMul", name, "w")) }
			sum := b.add("Mul", relu("x"), relu("y"))
			axis := b.numbers(1)
			normal := b.add("Div", b.add("Sub", sum, b.add("ReduceMean", sum, axis)),
				b.add("Exp", b.add("ReduceMax", sum, axis)))
			wide := b.add("MatMul", b.add("Tanh", normal), "w")
			b.graph.Output = append(b.graph.Output, info(b.add("Mul", wide, normal), nil))
			if tt.product {
				b.graph.Output = append(b.graph.Output, info(b.add("MatMul", sum, "w"), nil))
			}
			model := &onnxpb.ModelProto{
				IrVersion: proto.Int64(9), Graph: b.graph,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
			}
			r, g, regions := partition(t, model, shapes.Sizes{})
			inputs := map[string][]float64{}
			for i, in := range g.Inputs {
				for j := range in.Elements() {
					inputs[in.Name] = append(inputs[in.Name], math.Sin(float64(7*i+j)))
				}
			}
			compare(t, model, r, g, regions, inputs, 1e-5, 0)
			kept := slices.ContainsFunc(regions, func(r *fuse.Region) bool {
				return slices.ContainsFunc(r.Out, func(t *fuse.Tensor) bool { return t.Name == normal })
			})
			again := 0
			for _, r := range regions {
				for _, n := range r.Nodes {
					if strings.Contains(n.Out[0].Name, "/derived") {
						again++
					}
				}
			}
			if kept == tt.product || (again > 0) != tt.product {
				t.Errorf("the normalized values are kept: %t; %d nodes are computed again", kept, again)
			}
		})
	}
}

// TestDeriveInline: f32 copies of a bf16 tensor that is in memory are made where they are read, also where a Pad or a
// Concat reads them at other places than those of its region.
func TestDeriveInline(t *testing.T) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("inline")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{6, 16}), info("w", []int{16, 16}), info("v", []int{32, 16}))
	bf16, f32 := onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_FLOAT
	product := func(x, w string) string { return b.add("MatMul", x, b.add("Cast", w, to(bf16))) }
	x := b.add("Cast", "x", to(bf16))
	sum := b.add("Add", product(x, "w"), x)
	wide := b.add("Cast", sum, to(f32))
	padded := b.add("Pad", b.add("LeakyRelu", wide), b.numbers(2, 0, 2, 0))
	windows := b.add("Concat", b.add("Slice", padded, b.numbers(0), b.numbers(6), b.numbers(0)),
		b.add("Slice", padded, b.numbers(4), b.numbers(10), b.numbers(0)), attribute("axis", 1))
	late := b.add("Mul", b.add("Tanh", b.add("Cast", product(b.add("Cast", windows, to(bf16)), "v"), to(f32))), wide)
	for _, name := range []string{late, b.add("Cast", product(sum, "w"), to(f32))} {
		b.graph.Output = append(b.graph.Output, info(name, nil))
	}
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
	_, g, regions := partition(t, model, shapes.Sizes{})
	for _, r := range regions {
		if err := fuse.CheckPlaces(r); err != nil {
			t.Error(err)
		}
		for _, out := range r.Out {
			if out.Type == f32 && !slices.ContainsFunc(g.Outputs, func(o fuse.Output) bool { return o.Tensor == out }) {
				t.Errorf("%s writes %s in f32", r.Ops(), out.Name)
			}
		}
	}
	got, want := computed(t, g, regions), plainly(t, model)
	for i, o := range g.Outputs {
		if !slices.Equal(got[o.Tensor], want[i]) {
			t.Errorf("%s has other bits", o.Name)
		}
	}
}

// TestDeriveThroughInline: what a region computes from a slice of a product is computed again from that product,
// although the LeakyRelu between them exists only where the slice is read.
func TestDeriveThroughInline(t *testing.T) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("slice")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{7, 16}), info("w", []int{16, 16}), info("a", []int{16}))
	bf16, f32 := onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_FLOAT
	weights := b.add("Cast", "w", to(bf16))
	product := func(x string) string { return b.add("MatMul", x, weights) }
	first := b.add("Reshape", b.add("LeakyRelu", product(b.add("Cast", "x", to(bf16)))), b.numbers(14, 8))
	part := b.add("Reshape", b.add("Slice", first, b.numbers(1), b.numbers(13), b.numbers(0)), b.numbers(6, 16))
	x := b.add("Mul", b.add("Cast", part, to(f32)), "a")
	wave := b.add("Sin", x)
	second := b.add("Cast", product(b.add("Cast", b.add("Mul", wave, wave), to(bf16))), to(f32))
	model := b.outputs(b.add("Mul", b.add("Mul", b.add("Tanh", second), wave), b.add("Cos", x)))
	_, g, regions := partition(t, model, shapes.Sizes{})
	for _, r := range regions[:len(regions)-1] {
		if err := fuse.CheckPlaces(r); err != nil {
			t.Error(err)
		}
		for _, out := range r.Out {
			if out.Type == f32 {
				t.Errorf("%s writes %s in f32", r.Ops(), out.Name)
			}
		}
	}
	if got, want := computed(t, g, regions), plainly(t, model); !slices.Equal(got[g.Outputs[0].Tensor], want[0]) {
		t.Error("the output has other bits")
	}
}
