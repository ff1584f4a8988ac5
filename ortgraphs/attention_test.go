package ortgraphs

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func TestMasksScores(t *testing.T) {
	node := func(op, in, out string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: &op, Input: []string{in}, Output: []string{out}}
	}
	for first, want := range map[string]bool{"Add": true, "Where": true, "Sum": true, "MatMul": false} {
		g := &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node(first, "a", "b"), node("Softmax", "b", "c")}}
		if got := masksScores(g); got != want {
			t.Errorf("Softmax of %s: %v", first, got)
		}
	}
}
