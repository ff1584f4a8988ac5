package fuse_test

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestConvolvedOnce: convolutions of one f32 tensor, with other zeros around it, read one copy of it in bf16.
func TestConvolvedOnce(t *testing.T) {
	const time, channels = 32, 8
	bf16, f32 := onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_FLOAT
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("casts")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{1, time, channels}))
	x := b.add("Tanh", "x")
	var outputs []string
	for _, taps := range []int{3, 5} {
		weights := fmt.Sprint("w", taps)
		b.graph.Input = append(b.graph.Input, info(weights, []int{taps * channels, channels}))
		padded := b.add("Cast", b.add("Pad", x, b.numbers(0, taps/2, 0, 0, taps/2, 0)), to(bf16))
		var parts []any
		for i := range taps {
			parts = append(parts, b.add("Slice", padded, b.numbers(i), b.numbers(i+time), b.numbers(1)))
		}
		windows := b.add("Reshape", b.add("Concat", append(parts, attribute("axis", 2))...),
			b.numbers(time, taps*channels))
		y := b.add("MatMul", windows, b.add("Cast", weights, to(bf16)))
		outputs = append(outputs, b.add("Tanh", b.add("Cast", y, to(f32))))
	}
	model := b.outputs(outputs...)
	_, g := lowered(t, model, shapes.Sizes{})
	g.WindowBytes = 1
	convolutions, copies := 0, 0
	regions := fuse.Partition(g)
	for _, r := range regions {
		if fuse.ConvolutionOf(r.Work) != nil {
			convolutions++
		}
		for _, n := range r.Nodes {
			if n.Op == "Cast" && n.Out[0].Type == bf16 && n.Out[0].Elements() == time*channels &&
				n.In[0].Tensor.From != nil && n.In[0].Tensor.From.Op == "Tanh" {
				copies++
			}
		}
	}
	if convolutions != 2 || copies != 1 {
		t.Errorf("%d convolutions read %d copies, want 2 and 1", convolutions, copies)
	}
	got, want := computed(t, g, regions), plainly(t, model)
	for i, o := range g.Outputs {
		for j, x := range got[o.Tensor] {
			if w := want[i][j].f; math.Abs(x.f-w) > 1e-2 {
				t.Fatalf("%s[%d] is %g, want %g", o.Name, j, x.f, w)
			}
		}
	}
}
