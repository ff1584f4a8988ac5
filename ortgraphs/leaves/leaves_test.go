package leaves_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/leaves"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func TestLast(t *testing.T) {
	node := func(output string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String("Add"), Input: inputs, Output: []string{output}}
	}
	branch := &onnxpb.NodeProto{
		OpType: proto.String("If"), Input: []string{"c"}, Output: []string{"if"}, Attribute: []*onnxpb.AttributeProto{{
			G: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("inner", "outer")}},
		}},
	}
	nodes := []*onnxpb.NodeProto{
		node("loss", "x"), node("a", "x"), node("outer", "x"), node("grad.all", "c", "a"), node("grad.2", "a"), branch,
		node("b", "if", "a"), node("grad.1", "b"), node("c", "b"),
	}
	var got []string
	for _, n := range leaves.Last(nodes) {
		got = append(got, n.Output[0])
	}
	if want := strings.Fields("a outer if b c grad.all grad.1 grad.2 loss"); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if nodes[0].Output[0] != "loss" {
		t.Error("the list of the model has changed")
	}
}
