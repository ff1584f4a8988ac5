package ortgraphs

import (
	"slices"
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

// usesBF16 reports whether anything in a bf16 graph is bf16: a parameter, another input, or the result of a Cast.
func usesBF16(parameters []manifest.Parameter, m *onnxpb.ModelProto) bool {
	const bf16 = onnxpb.TensorProto_BFLOAT16
	return slices.ContainsFunc(parameters, func(p manifest.Parameter) bool { return p.Compute == manifest.BF16 }) ||
		slices.ContainsFunc(m.Graph.Input, func(v *onnxpb.ValueInfoProto) bool {
			return v.GetType().GetTensorType().GetElemType() == int32(bf16)
		}) || castsTo(bf16, m.Graph.Node) ||
		slices.ContainsFunc(m.Functions, func(f *onnxpb.FunctionProto) bool { return castsTo(bf16, f.Node) })
}

// castsTo reports whether one of the nodes, or of those in their bodies, is a Cast to a type.
func castsTo(t onnxpb.TensorProto_DataType, nodes []*onnxpb.NodeProto) bool {
	return slices.ContainsFunc(nodes, func(n *onnxpb.NodeProto) bool {
		cast := n.GetOpType() == "Cast"
		return slices.ContainsFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool {
			return cast && a.GetName() == "to" && a.GetI() == int64(t) || castsTo(t, a.GetG().GetNode())
		})
	})
}
