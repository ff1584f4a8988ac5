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
// dilation, and zeros before and after. The strided one is exported in another form, and the long one as windows of
// windows. All zeros but those of the long one's gradient are the library's.
var found = []string{
	"16 16 1 [1 1023] [1 1020] [1 4] [1 1] [1 1] [0 0] [0 0]",
	"16 16 1 [1 1024] [1 1024] [1 5] [1 1] [1 2] [0 4] [0 4]",
	"16 16 2 [1 1024] [1 1020] [1 5] [1 1] [1 1] [0 0] [0 0]",
	"8 16 1 [5 80] [3 80] [3 5] [1 1] [2 1] [1 2] [1 2]",
	"8 8 1 [1 510] [1 510] [1 36] [1 1] [1 1] [0 17] [0 18]",
	"8 8 1 [5 80] [5 80] [3 3] [1 1] [1 1] [1 1] [1 1]",
}

// TestFindConvolutions: forward passes and gradients are found, and small ones are left. The graph is right after each
// pass.
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
	for least, want := range map[int][]string{1: want, 0: nil} {
		g := convolutions(t, map[string]int{"B": 2, "T_mel": 5, "T_wav": 1024})
		g.WindowBytes = least
		regions, err := VerifiedPartition(g)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range regions {
			if c, ok := r.Work.(*Convolution); ok {
				got = append(got, fmt.Sprintf("pass %d: %s", c.Pass, fmt.Sprint(c.Channels, c.Results, c.Groups, c.Size,
					c.ResultSize, c.Kernel, c.Stride, c.Dilation, c.Before, c.After)))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("windows of at least %d bytes:\n%s\nwant\n%s", least, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
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
