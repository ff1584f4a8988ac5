package variant

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The rank and the scale of the adapter of Adapter.
const (
	adapterRank  = 2
	adapterScale = 3
)

// Adapter gives a matrix of a linear layer an adapter (docs/lora.md), which alone is trained: A begins with 0.5
// everywhere, B with zeros.
func Adapter(weight string) Change {
	return func(dir string, m *manifest.Bundle) error {
		i := slices.IndexFunc(m.Parameters,
			func(p manifest.Parameter) bool { return p.Name == weight && len(p.Shape) == 2 })
		if i < 0 {
			return fmt.Errorf("it has no matrix %s", weight)
		}
		outer, inner := m.Parameters[i].Shape[0], m.Parameters[i].Shape[1]
		for i := range m.Parameters {
			m.Parameters[i].Frozen = true
		}
		layer := strings.TrimSuffix(weight, ".weight")
		a := manifest.Parameter{Name: layer + ".lora_A.weight", Shape: []int{adapterRank, inner}}
		b := manifest.Parameter{Name: layer + ".lora_B.weight", Shape: []int{outer, adapterRank}}
		m.Parameters = append(m.Parameters, a, b)
		m.Adapters = []manifest.Adapter{{Weight: weight, A: a.Name, B: b.Name, Scale: adapterScale, Layer: "linear"}}
		for i, g := range m.Graphs {
			m.Graphs[i].Nodes = nil
			file := filepath.Join(dir, g.File)
			if err := rewriteGraph(file, file, func(model *onnxpb.GraphProto) {
				adapt(model, weight, a, b, g.Kind == "train")
			}); err != nil {
				return err
			}
		}
		return store(filepath.Join(dir, ortgraphs.WeightsFile), constant(a.Name, a.Shape, 0.5),
			constant(b.Name, b.Shape, 0))
	}
}

// adapt makes a graph use weight + scale b a, and return the gradients of a and b.
func adapt(g *onnxpb.GraphProto, weight string, a, b manifest.Parameter, train bool) {
	const merged, scale = "adapter.merged", "adapter.scale"
	for _, n := range g.Node {
		for i := range n.Input {
			if n.Input[i] == weight {
				n.Input[i] = merged
			}
		}
	}
	g.Node = slices.Insert(g.Node, 0,
		node("MatMul", "adapter.product", b.Name, a.Name), node("Mul", "adapter.scaled", "adapter.product", scale),
		node("Add", merged, weight, "adapter.scaled"))
	g.Initializer = append(g.Initializer, scalar(scale, adapterScale))
	g.Input = append(g.Input, float(a.Name, a.Shape...), float(b.Name, b.Shape...))
	if !train {
		return
	}
	grad := func(p manifest.Parameter) string { return "grad." + p.Name }
	g.Node = append(g.Node, node("Mul", "adapter.grad", "grad."+weight, scale),
		transpose("adapter.a", a.Name), node("MatMul", grad(b), "adapter.grad", "adapter.a"),
		transpose("adapter.b", b.Name), node("MatMul", grad(a), "adapter.b", "adapter.grad"))
	g.Output = slices.DeleteFunc(g.Output,
		func(v *onnxpb.ValueInfoProto) bool { return strings.HasPrefix(v.GetName(), "grad.") })
	g.Output = append(g.Output, float(grad(a), a.Shape...), float(grad(b), b.Shape...))
}

// transpose is the node of a matrix's transposition.
func transpose(output, input string) *onnxpb.NodeProto {
	n := node("Transpose", output, input)
	n.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{1, 0}},
	}
	return n
}
