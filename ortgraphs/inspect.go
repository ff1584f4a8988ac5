package ortgraphs

import (
	"cmp"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Summary is what a person asks about a bundle.
type Summary struct {
	Name, Description, License string
	// Hash is Bundle.Hash.
	Hash            string
	Inputs, Outputs []manifest.TensorSpec
	Parameters      ParameterSummary
	Buckets         []manifest.Bucket
	// Graphs stand in the order of bundle.json.
	Graphs []GraphSummary
}

// ParameterSummary counts tensors, and values: all of them, and by what the optimizer does with them.
type ParameterSummary struct {
	Tensors                               int
	Elements, Decayed, NotDecayed, Frozen int
	// ArenaBytes is the size of one arena: weights, gradients and each of two moments have one.
	ArenaBytes int64
}

// GraphSummary describes one graph.
type GraphSummary struct {
	manifest.Graph
	// Bytes is the size of the file.
	Bytes int
	// Producer is the program that wrote it, with its version.
	Producer  string
	IRVersion int64
	// Inputs and Outputs are written "name dtype[shape]", in the graph's order.
	Inputs, Outputs []string
	// Nodes counts all nodes, those of functions and of graphs inside nodes included. Ops counts them by
	// type, the most frequent first.
	Nodes int
	Ops   []OpCount
	// Functions names the model-local functions as "domain.name", sorted.
	Functions []string
}

// OpCount is an operator, "domain.name" where it is not ONNX's own, and the number of its nodes.
type OpCount struct {
	Op    string
	Nodes int
}

// Inspect summarises the bundle.
func (b *Bundle) Inspect() Summary {
	m := b.Manifest
	s := Summary{
		Name: m.Name, Description: m.Description, License: m.License, Hash: b.Hash(),
		Inputs: m.Inputs, Outputs: m.Outputs, Buckets: m.Buckets,
		Parameters: ParameterSummary{Tensors: len(m.Parameters), ArenaBytes: 4 * int64(LayoutArena(m.Parameters).Len)},
	}
	for _, p := range m.Parameters {
		n := p.Elements()
		s.Parameters.Elements += n
		switch {
		case p.Frozen:
			s.Parameters.Frozen += n
		case p.Decay:
			s.Parameters.Decayed += n
		default:
			s.Parameters.NotDecayed += n
		}
	}
	for _, g := range m.Graphs {
		i := slices.IndexFunc(b.graphs, func(s GraphSummary) bool { return s.Graph == g })
		s.Graphs = append(s.Graphs, b.graphs[i])
	}
	return s
}

func summarize(g manifest.Graph, model *onnxpb.ModelProto, size int) GraphSummary {
	s := GraphSummary{Graph: g, Bytes: size, Producer: model.GetProducerName(), IRVersion: model.GetIrVersion()}
	if v := model.GetProducerVersion(); v != "" {
		s.Producer += " " + v
	}
	for _, v := range model.Graph.Input {
		s.Inputs = append(s.Inputs, valueText(v))
	}
	for _, v := range model.Graph.Output {
		s.Outputs = append(s.Outputs, valueText(v))
	}
	ops := map[string]int{}
	countOps(ops, model.Graph.Node)
	for _, fn := range model.Functions {
		s.Functions = append(s.Functions, opName(fn.GetDomain(), fn.GetName()))
		countOps(ops, fn.Node)
	}
	slices.Sort(s.Functions)
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		s.Ops = append(s.Ops, OpCount{op, ops[op]})
		s.Nodes += ops[op]
	}
	slices.SortStableFunc(s.Ops, func(a, b OpCount) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return s
}

func countOps(ops map[string]int, nodes []*onnxpb.NodeProto) {
	for _, n := range nodes {
		ops[opName(n.GetDomain(), n.GetOpType())]++
		for _, a := range n.Attribute {
			countOps(ops, a.GetG().GetNode())
			for _, g := range a.Graphs {
				countOps(ops, g.GetNode())
			}
		}
	}
}

func opName(domain, name string) string {
	if isDefault(domain) {
		return name
	}
	return domain + "." + name
}
