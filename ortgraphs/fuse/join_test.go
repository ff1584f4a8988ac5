package fuse

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestTurns: while groups are joined, each keeps a turn after the groups whose results it reads. Searches for detours
// rely on it.
func TestTurns(t *testing.T) {
	file, err := os.ReadFile("../testdata/pico/training_model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	model := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, model); err != nil {
		t.Fatal(err)
	}
	r, err := shapes.Infer(model, shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	p := newPartition(g)
	for _, join := range []func(){func() {}, p.joinReaders, p.joinNeighbours} {
		join()
		for _, n := range g.Nodes {
			if p.order[n.group.turn] != n.group {
				t.Fatalf("%s is not computed at turn %d", n.Out[0].Name, n.group.turn)
			}
			for _, o := range n.In {
				if from := o.Tensor.From; from != nil && from.group != n.group && from.group.turn >= n.group.turn {
					t.Fatalf("%s, at turn %d, reads %s of turn %d", n.Out[0].Name, n.group.turn, o.Tensor.Name,
						from.group.turn)
				}
			}
		}
	}
}
