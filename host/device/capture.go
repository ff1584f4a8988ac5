package device

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Capturable returns a function that decides from the nodes of a graph whether it can be captured as a CUDA graph, and returns the reason
// if it cannot: of a fused graph, or for nil of the training graph in a file of the bundle. spec is --graph.
func Capturable(spec string, b *ortgraphs.Bundle, file string) func(fused []byte) error {
	return func(fused []byte) error {
		if fused == nil {
			if f := fault(b.Model(file), lint.Trials(b.Manifest)); f != nil {
				return hint.Errorf("xtts-host graph lint "+hint.Path(spec)+" lists all", "%s: %s", file, f)
			}
			return nil
		}
		model := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(fused, model); err != nil {
			return err
		}
		if f := fault(model, []shapes.Sizes{{}}); f != nil { // all its sizes are fixed
			return hint.Errorf("xtts-host graph lint "+hint.Path(spec)+" lists what the graph as exported has of that", "%s, fused: %s", file, f)
		}
		return nil
	}
}

// fault returns the first finding that rules out CUDA graphs.
func fault(model *onnxpb.ModelProto, trials []shapes.Sizes) *lint.Finding {
	for _, f := range lint.Check(model, trials) {
		if f.Rule == lint.CUDAGraph || f.Rule == lint.Memcpy || f.Rule == lint.CPUNode {
			return &f
		}
	}
	return nil
}
