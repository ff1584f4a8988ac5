package variant

import (
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// WithoutDropout has the training graphs take the seed -1, with which they drop nothing: so what they compute
// does not depend on the place of a row in a batch.
func WithoutDropout(dir string, m *manifest.Bundle) error {
	for _, graph := range m.Graphs {
		if graph.Kind != "train" {
			continue
		}
		file := filepath.Join(dir, graph.File)
		if err := rewriteGraph(file, file, func(g *onnxpb.GraphProto) {
			g.Input = slices.DeleteFunc(g.Input, func(in *onnxpb.ValueInfoProto) bool { return in.GetName() == "seed" })
			g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
				Name: proto.String("seed"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)),
				Int64Data: []int64{-1},
			})
		}); err != nil {
			return err
		}
	}
	return nil
}
