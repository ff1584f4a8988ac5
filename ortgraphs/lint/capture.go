package lint

import (
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Uncapturable returns the first finding that keeps a graph out of a CUDA graph, or nil.
func Uncapturable(model *onnxpb.ModelProto, trials []shapes.Sizes) *Finding {
	for _, f := range Check(model, trials) {
		if f.Rule == CUDAGraph || f.Rule == Memcpy || f.Rule == CPUNode || f.Rule == HostSync {
			return &f
		}
	}
	return nil
}
