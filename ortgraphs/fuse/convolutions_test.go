package fuse

import (
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestFindConvolutions: forward passes and gradients are found, dilated, in groups and over two dimensions, with the
// zeros around them; small ones are left. The graph is right after each pass.
func TestFindConvolutions(t *testing.T) {
	const rows, frames, samples = 2, 5, 1024
	dilated := Convolution{
		Batch: rows, Channels: 16, Results: 16, Groups: 1, Size: [2]int{1, samples}, ResultSize: [2]int{1, samples},
		Kernel: [2]int{1, 5}, Stride: [2]int{1, 1}, Dilation: [2]int{1, 2}, Before: [2]int{0, 4}, After: [2]int{0, 4},
	}
	grouped := dilated
	grouped.Groups, grouped.ResultSize[1], grouped.Dilation[1] = 2, samples-4, 1
	grouped.Before, grouped.After = [2]int{}, [2]int{}
	square := Convolution{
		Batch: rows, Channels: 8, Results: 8, Groups: 1, Size: [2]int{frames, 80}, ResultSize: [2]int{frames, 80},
		Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Before: [2]int{1, 1}, After: [2]int{1, 1},
	}
	want := map[string]int{}
	for _, c := range []Convolution{dilated, grouped, square} {
		for _, c.Pass = range []ConvolutionPass{Forward, OfInput, OfWeights} {
			want[form(&c)]++
		}
	}
	for least, list := range map[int]map[string]int{1: want, 1 << 30: {}} {
		g := convolutions(t, map[string]int{"B": rows, "T_mel": frames, "T_wav": samples})
		g.WindowBytes = least
		regions, err := VerifiedPartition(g)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, r := range regions {
			if c, ok := r.Work.(*Convolution); ok {
				found[form(c)]++
			}
		}
		if fmt.Sprint(found) != fmt.Sprint(list) {
			t.Errorf("windows of at least %d bytes:\n%v\nwant\n%v", least, found, list)
		}
	}
}

// form is what a library knows of a convolution.
func form(c *Convolution) string {
	return fmt.Sprint(c.Pass, c.Batch, c.Channels, c.Results, c.Groups, c.Size, c.ResultSize, c.Kernel, c.Stride,
		c.Dilation, c.Before, c.After)
}

func convolutions(t *testing.T, sizes map[string]int) *Graph {
	t.Helper()
	file, err := os.ReadFile("../fused/prooftest/testdata/convolutions.bf16.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, m); err != nil {
		t.Fatal(err)
	}
	r, err := shapes.Infer(m, sizes)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
