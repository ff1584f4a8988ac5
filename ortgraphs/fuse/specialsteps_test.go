package fuse_test

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// passed runs the kernel of a Scan over 40 steps of three columns and returns what each step is passed. All columns
// have the same items of x, the rest of which is 0, and one number for all items of y.
func passed(t *testing.T, of string, shape []int, x []float64, y, start float64) []number {
	t.Helper()
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("special")}}
	perm := []int{0, 1}
	if shape[0] == 3 {
		perm = []int{1, 0}
	}
	inputs := map[string][]float64{"x": make([]float64, 120), "y": slices.Repeat([]float64{y}, 120)}
	for i := range inputs["x"] {
		step := i / 3
		if shape[0] == 3 {
			step = i % 40
		}
		if step < len(x) {
			inputs["x"][i] = x[step]
		}
	}
	var in []string
	for _, name := range []string{"x", "y"} {
		b.graph.Input = append(b.graph.Input, info(name, shape))
		in = append(in, b.add("Transpose", name, list("perm", perm...)))
	}
	for name, x := range map[string]float32{"one": 1, "zero": 0} {
		b.named(name, "Identity", b.number(x))
	}
	g := &steps{&onnxpb.GraphProto{Name: proto.String("step")}, f32}
	s, item, other := g.input("passed"), g.input("item"), g.input("other")
	next := ""
	if of == "product" {
		next = g.add("Add", g.add("Mul", s, item), other)
	} else {
		next = liftable[of](g, s, item, other)
	}
	for _, name := range []string{next, g.add("Identity", s)} {
		g.graph.Output = append(g.graph.Output, g.info(name))
	}
	first := b.add("Expand", b.number(float32(start)), b.numbers(3))
	b.graph.Node = append(b.graph.Node, &onnxpb.NodeProto{
		OpType: proto.String("Scan"), Input: append([]string{first}, in...),
		Output: []string{"last", "all"}, Attribute: []*onnxpb.AttributeProto{attribute("num_scan_inputs", 2),
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g.graph}},
	})
	_, _, regions := partition(t, b.outputs(b.add("Transpose", "all", list("perm", perm...))), shapes.Sizes{})
	kernel, err := generate(regions[0])
	if err != nil || len(regions) != 1 {
		t.Fatal(len(regions), err)
	}
	var buffers [][]byte
	for _, in := range kernel.In {
		x := inputs[in.Name]
		if in.Data != nil {
			x = in.Data
		}
		buffers = append(buffers, pack(encode(x, f32), f32))
	}
	out := poisoned(4 * 120)
	e := &emulation{}
	e.compile(t, []cudactest.Source{{
		Text: kernel.Source, Functions: map[string]int{kernel.Launches[0].Function: len(kernel.In) + 1},
	}})
	e.run(t, 0, kernel.Launches, append(buffers, out))
	return unpack(out, f32)
}

// TestSpecialSteps: infinities, what is not a number, and slopes whose products are larger than any number.
func TestSpecialSteps(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		of    string
		items []float64 // of x, of 40 that are 0 otherwise
		y     float64   // items of y
		start float64
		at    int
		want  float64 // what step at is passed
	}{
		{"logarithms", []float64{-inf, -inf, 2, -inf}, 0, -inf, 2, -inf},
		{"logarithms", []float64{-inf, -inf, 2, -inf}, 0, -inf, 4, 2},
		{"logarithms", []float64{-inf, 1, inf, -inf}, 0, 0, 39, inf},
		{"logarithms", []float64{-inf, inf, inf}, 0, inf, 39, inf},
		{"logarithms", []float64{-inf, -inf, nan}, 0, 0, 39, nan},
		{"logarithms", nil, 0, -inf, 39, math.Log(39)},
		{"logarithms", []float64{1e30, -1e30}, 0, -inf, 39, 1e30},
		{"product", slices.Repeat([]float64{1e30}, 40), 0, 0, 39, 0},
		{"product", slices.Repeat([]float64{1e30}, 40), 1e-30, 0, 39, inf},
		{"product", slices.Repeat([]float64{1e30, 1e-30}, 20), 0, 1, 38, 1},
		{"product", slices.Concat(slices.Repeat([]float64{1e30}, 20), make([]float64, 20)), 3, 0, 39, 3},
		{"product", []float64{nan, 0}, 0, 0, 1, nan},
		{"product", []float64{nan, 0}, 0, 0, 39, nan},
		{"product", []float64{2, 1, 0}, 0, inf, 2, inf},
		{"product", []float64{2, 1, 0}, 0, inf, 39, 0}, // forgotten
		{"product", []float64{2, 1, 0}, 0, nan, 39, nan},
		{"product", []float64{2, 1, 0}, 3, nan, 39, nan},
		{"product", slices.Repeat([]float64{1e-30}, 40), 0, nan, 39, nan},
		{"product", slices.Repeat([]float64{1e30}, 40), 0, nan, 39, nan},
		{"product", append([]float64{inf}, slices.Repeat([]float64{1}, 39)...), 0, 0, 39, nan},
	} {
		for _, shape := range [][]int{{40, 3}, {3, 40}} {
			got := passed(t, c.of, shape, c.items, c.y, c.start)
			for i := range 3 {
				at := c.at*3 + i
				if shape[0] == 3 {
					at = i*40 + c.at
				}
				x, near := got[at].f, 1e-6*max(1, math.Abs(c.want))
				if x != c.want && !(x != x && c.want != c.want) && !(math.Abs(x-c.want) < near) {
					t.Errorf("%s of %v from %g in %v: step %d is passed %g, want %g", c.of, c.items, c.start, shape,
						c.at, x, c.want)
				}
			}
		}
	}
}
