package ortgraphs

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func TestLeavesLast(t *testing.T) {
	node := func(output string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String("Add"), Input: inputs, Output: []string{output}}
	}
	branch := &onnxpb.NodeProto{OpType: proto.String("If"), Input: []string{"c"}, Output: []string{"if"}, Attribute: []*onnxpb.AttributeProto{{
		G: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("inner", "outer")}},
	}}}
	nodes := []*onnxpb.NodeProto{node("loss", "x"), node("a", "x"), node("outer", "x"), node("grad.2", "a"), branch, node("b", "if", "a"), node("grad.1", "b")}
	var got []string
	for _, n := range leavesLast(nodes) {
		got = append(got, n.Output[0])
	}
	if want := strings.Fields("a outer if b grad.1 grad.2 loss"); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if nodes[0].Output[0] != "loss" {
		t.Error("the list of the model has changed")
	}
}

// TestProgramsAreInOrder: each node of a program stands after the nodes whose results it reads.
func TestProgramsAreInOrder(t *testing.T) {
	for _, name := range Builtins() {
		b, err := Builtin(name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		g := model(t, programOf(t, b, func(string) bool { return true })).Graph
		made := map[string]bool{"": true}
		for _, v := range g.Input {
			made[v.GetName()] = true
		}
		for _, v := range g.Initializer {
			made[v.GetName()] = true
		}
		for _, n := range g.Node {
			for _, input := range n.Input {
				if !made[input] {
					t.Fatalf("%s: node %q reads %s before it is computed", name, n.GetName(), input)
				}
			}
			for _, output := range n.Output {
				made[output] = true
			}
		}
	}
}
