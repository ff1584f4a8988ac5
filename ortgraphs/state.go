package ortgraphs

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// StatePrefix precedes the name of a state tensor in the name of its new value, an output of the training graph.
const StatePrefix = "state."

// stateCopies is how often a run holds the state: after the last window, before the next batch, and after it. One of
// several ranks also holds what rank 0 left.
const stateCopies = 3

// PlaceState places state tensors in a block of so many bytes. The gaps between them are never read.
func PlaceState(list []manifest.State) (places []Span, bytes int) {
	for _, s := range list {
		places = append(places, Span{DType: manifest.F32, Offset: bytes, Elements: s.Elements()})
		size := places[len(places)-1].Bytes()
		bytes += (size + arenaAlign - 1) / arenaAlign * arenaAlign
	}
	return places, bytes
}

// StateBytes returns the memory that a run needs for the state, alone or as one of several ranks.
func StateBytes(list []manifest.State, alone bool) int {
	_, bytes := PlaceState(list)
	if alone {
		return stateCopies * bytes
	}
	return (stateCopies + 1) * bytes
}

// Choose returns the graph that chooses one of two i32 vectors by a flag:
//
//	chosen = flag ? new : old
//
// It is elementwise, so chosen may lie where old does. Integers keep the bits of what they stand for: ONNX Runtime's
// CPU provider gives 0 for a float of -0.
func Choose() ([]byte, error) {
	i32 := onnxpb.TensorProto_INT32
	g := &onnxpb.GraphProto{
		Name: proto.String("choose"),
		Input: []*onnxpb.ValueInfoProto{
			declared("flag", onnxpb.TensorProto_BOOL), declared("new", i32, "N"), declared("old", i32, "N"),
		},
		Output: []*onnxpb.ValueInfoProto{declared("chosen", i32, "N")},
		Node:   []*onnxpb.NodeProto{operation("Where", "chosen", "flag", "new", "old")},
	}
	return marshalGraph(g)
}
