package plan

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestFaultsOfBefore(t *testing.T) {
	node := func(op, in, out string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: &op, Input: []string{in}, Output: []string{out}}
	}
	graph := func(nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
		return &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: nodes}}
	}
	masked := graph(node("Add", "a", "b"), node("Softmax", "b", "c"))
	state := []manifest.State{{Name: "mean"}}
	for _, c := range []struct {
		name     string
		exporter int
		eval     bool
		state    []manifest.State
		train    *onnxpb.ModelProto
		want     []string
	}{
		{"without a number", 0, true, nil, masked, []string{"self.training", "all keys"}},
		{"state was in evaluation mode", 0, true, state, masked, []string{"all keys"}},
		{"a softmax without a mask", 0, true, nil, graph(node("MatMul", "a", "b"), node("Softmax", "b", "c")), []string{"self.training"}},
		{"no eval graph, no attention", 0, false, nil, graph(node("Add", "a", "b")), nil},
		{"exported again", checkedExporter, true, nil, masked, nil},
	} {
		m := &manifest.Bundle{Exporter: c.exporter, State: c.state, Graphs: []manifest.Graph{{File: "train", Kind: "train"}}}
		if c.eval {
			m.Graphs = append(m.Graphs, manifest.Graph{File: "eval", Kind: "eval"})
		}
		got := faultsOfBefore(m, func(file string) *onnxpb.ModelProto {
			if file == "train" {
				return c.train
			}
			return graph()
		})
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %d", c.name, got, len(c.want))
			continue
		}
		for i, text := range c.want {
			if !strings.Contains(got[i], text) || !strings.Contains(got[i], "exporting again") {
				t.Errorf("%s: %q, want %q", c.name, got[i], text)
			}
		}
	}
}
