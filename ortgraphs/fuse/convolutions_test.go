package fuse

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// found are the convolutions of the graph: channels, results and groups, the sizes of x and y, kernel, stride,
// dilation, and zeros before and after. The long one is exported as windows of windows, those with a stride in another
// form. All zeros but those of the long one's gradient are the library's.
var found = []string{
	"16 16 1 [1 1023] [1 1020] [1 4] [1 1] [1 1] [0 0] [0 0]",
	"16 16 1 [1 1024] [1 1024] [1 5] [1 1] [1 2] [0 4] [0 4]",
	"16 16 2 [1 1024] [1 1020] [1 5] [1 1] [1 1] [0 0] [0 0]",
	"16 8 1 [1 1020] [1 510] [1 4] [1 2] [1 1] [0 1] [0 1]",
	"8 16 1 [5 80] [3 80] [3 5] [1 1] [2 1] [1 2] [1 2]",
	"8 8 1 [1 510] [1 510] [1 36] [1 1] [1 1] [0 17] [0 18]",
	"8 8 1 [5 80] [3 40] [3 3] [2 2] [1 1] [1 1] [1 1]",
	"8 8 1 [5 80] [5 80] [3 3] [1 1] [1 1] [1 1] [1 1]",
}

// TestFindConvolutions: forward passes and gradients are found in each precision, and small ones are left. The graph is
// right after each pass.
func TestFindConvolutions(t *testing.T) {
	var want []string
	for pass := range 3 {
		for _, c := range found {
			if pass == int(OfInput) {
				c = strings.Replace(c, "[1 510] [1 510] [1 36] [1 1] [1 1] [0 17] [0 18]",
					"[1 545] [1 510] [1 36] [1 1] [1 1] [0 0] [0 0]", 1)
			}
			want = append(want, fmt.Sprintf("pass %d: %s", pass, c))
		}
	}
	for file, element := range map[string]shapes.Type{
		"convolutions.onnx": onnxpb.TensorProto_FLOAT, "convolutions.bf16.onnx": onnxpb.TensorProto_BFLOAT16,
	} {
		for least, want := range map[int][]string{1: want, 0: nil} {
			g := convolutions(t, file)
			g.WindowBytes = least
			if got := foundIn(t, g, element); !slices.Equal(got, want) {
				t.Errorf("%s, windows of at least %d bytes:\n%s\nwant\n%s", file, least, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
	}
}

// TestFindForwardConvolutions: those of a graph without gradients, as an eval graph is, are found, too.
func TestFindForwardConvolutions(t *testing.T) {
	g := convolutions(t, "convolutions.onnx")
	g.WindowBytes = 1
	g.Outputs = slices.DeleteFunc(g.Outputs, func(o Output) bool { return strings.HasPrefix(o.Name, "grad.") })
	g.Nodes = reachable(g)
	var want []string
	for _, c := range found {
		want = append(want, "pass 0: "+c)
	}
	if got := foundIn(t, g, onnxpb.TensorProto_FLOAT); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// foundIn partitions a graph, and describes its convolutions, which have elements of a type.
func foundIn(t *testing.T, g *Graph, element shapes.Type) (list []string) {
	t.Helper()
	regions, err := VerifiedPartition(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if c := ConvolutionOf(r.Work); c != nil {
			list = append(list, fmt.Sprintf("pass %d: %s", c.Pass, fmt.Sprint(c.Channels, c.Results, c.Groups, c.Size,
				c.ResultSize, c.Kernel, c.Stride, c.Dilation, c.Before, c.After)))
			for _, x := range []*Tensor{c.In[0], c.In[1], r.Out[0]} {
				if c.Type != element || x.Type != element {
					t.Errorf("%s has %s of %v", list[len(list)-1], x.Name, x.Type)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestNoiseOfConvolutions: in TF32, both operands are moved as those of products are, also through windows.
func TestNoiseOfConvolutions(t *testing.T) {
	g := convolutions(t, "convolutions.onnx")
	g.WindowBytes = 1
	for _, r := range Partition(g) {
		c, ok := r.Work.(*Convolution)
		if !ok {
			continue
		}
		for tf32, want := range map[bool]int{false: 1, true: 1 << 12} {
			w := &proofWriter{prover: Prover{TF32: tf32}}
			for _, x := range c.In {
				if got := w.units(r, x); got != want {
					t.Errorf("TF32 %t: %s of pass %d moves by %d units, want %d", tf32, x.Name, c.Pass, got, want)
				}
			}
		}
	}
}

// convolutions is a graph of prooftest.
func convolutions(t *testing.T, name string) *Graph {
	t.Helper()
	file, err := os.ReadFile("../fused/prooftest/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, m); err != nil {
		t.Fatal(err)
	}
	r, err := shapes.Infer(m, map[string]int{"B": 2, "T_mel": 5, "T_wav": 1024})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
