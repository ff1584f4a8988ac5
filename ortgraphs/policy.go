package ortgraphs

import (
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Policy returns the policy of a run in a precision, F32 or BF16, that trains everything that the bundle trains.
// Gradients have the types of the training graph.
func (b *Bundle) Policy(precision manifest.DType) Policy {
	p := Policy{Precision: precision, Gradients: map[string]manifest.DType{}}
	if precision == manifest.BF16 {
		for _, name := range b.widened {
			p.Gradients[name] = manifest.F32
		}
	}
	return p
}

// widened returns the parameters whose gradients a graph returns in f32.
func widened(g *onnxpb.GraphProto) (names []string) {
	for _, v := range g.Output {
		name, ok := strings.CutPrefix(v.GetName(), gradPrefix)
		if ok && v.GetType().GetTensorType().GetElemType() == int32(onnxpb.TensorProto_FLOAT) {
			names = append(names, name)
		}
	}
	return names
}
