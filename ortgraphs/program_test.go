package ortgraphs

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestProgramOfTheLoss: pruned to its loss, a training graph has no node that only gradients need, and all nodes that
// the loss needs.
func TestProgramOfTheLoss(t *testing.T) {
	for _, name := range Builtins() {
		b, err := Builtin(name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		whole := programOf(t, b, func(string) bool { return true })
		loss := programOf(t, b, func(output string) bool { return !strings.HasPrefix(output, gradPrefix) })
		full, pruned := model(t, whole), model(t, loss)
		needed := towards(full.Graph, pruned.Graph.Output)
		for i, n := range full.Graph.Node {
			kept := contains(pruned.Graph.Node, n)
			if kept != needed[i] {
				t.Errorf("%s: node %d %q: kept %v, needed %v", name, i, n.GetName(), kept, needed[i])
			}
		}
		for _, v := range pruned.Graph.Output {
			if strings.HasPrefix(v.GetName(), gradPrefix) {
				t.Errorf("%s: output %s is left", name, v.GetName())
			}
		}
		eval, _ := b.Manifest.EvalGraph()
		without, err := b.Program(eval, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d nodes, %d without gradients, %d in the eval graph", name, whole.Nodes, loss.Nodes, without.Nodes)
		again := programOf(t, b, func(output string) bool { return !strings.HasPrefix(output, gradPrefix) })
		if !bytes.Equal(loss.Model, again.Model) || loss.Hash() != again.Hash() || loss.Hash() == whole.Hash() {
			t.Errorf("%s: pruned twice: %s and %s, whole %s", name, loss.Hash(), again.Hash(), whole.Hash())
		}
	}
}

func programOf(t *testing.T, b *Bundle, keep func(string) bool) *Program {
	t.Helper()
	g, _ := b.Manifest.TrainingGraph("", manifest.F32)
	p, err := b.Program(g, keep)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func model(t *testing.T, p *Program) *onnxpb.ModelProto {
	t.Helper()
	m, err := parseModel(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// towards returns for each node whether an output needs it. It goes from the last node to the first, because nodes are
// in the order of execution.
func towards(g *onnxpb.GraphProto, outputs []*onnxpb.ValueInfoProto) []bool {
	used := map[string]bool{}
	for _, v := range outputs {
		used[v.GetName()] = true
	}
	needed := make([]bool, len(g.Node))
	for i := len(g.Node) - 1; i >= 0; i-- {
		for _, name := range g.Node[i].Output {
			needed[i] = needed[i] || used[name]
		}
		for _, name := range g.Node[i].Input {
			used[name] = used[name] || needed[i]
		}
	}
	return needed
}

func contains(nodes []*onnxpb.NodeProto, n *onnxpb.NodeProto) bool {
	for _, other := range nodes {
		if proto.Equal(other, n) {
			return true
		}
	}
	return false
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
