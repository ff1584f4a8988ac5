package device

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Capturable returns a function that decides from the nodes of a training graph whether it can be captured as a CUDA
// graph, and returns the reason if it cannot: of a file of the bundle as exported, for nil, or fused. spec is --graph.
func Capturable(spec string, b *ortgraphs.Bundle) func(file string, fused []byte) error {
	return func(file string, fused []byte) error {
		if fused == nil {
			if f := lint.Uncapturable(b.Model(file), lint.Trials(b.Manifest)); f != nil {
				return hint.Errorf(hint.Command("graph lint "+hint.Path(spec)+" lists all"), "%s: %s", file, f)
			}
			return nil
		}
		model := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(fused, model); err != nil {
			return err
		}
		if f := lint.Uncapturable(model, []shapes.Sizes{{}}); f != nil { // all its sizes are fixed
			return hint.Errorf(
				hint.Command("graph lint "+hint.Path(spec)+" lists what the graph as exported has of that"),
				"%s, fused: %s", file, f)
		}
		return nil
	}
}
