package ortgraphs

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Summary is what graph inspect reports about a bundle.
type Summary struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	License     string `json:"license"`
	// Hash is Bundle.Hash.
	Hash       string                `json:"hash"`
	Inputs     []manifest.TensorSpec `json:"inputs"`
	Scalars    []manifest.Scalar     `json:"scalars,omitempty"`
	Outputs    []manifest.TensorSpec `json:"outputs"`
	Parameters ParameterSummary      `json:"parameters"`
	State      []manifest.State      `json:"state,omitempty"`
	Buckets    []manifest.Bucket     `json:"buckets"`
	Dynamic    manifest.Bucket       `json:"dynamic,omitempty"`
	// Steps is the cost of a step for each bucket with each of BatchSizes.
	Steps []StepCost `json:"steps"`
	// Graphs are in the order of bundle.json.
	Graphs []GraphSummary `json:"graphs"`
	// Inference graphs are in the order of bundle.json.
	Inference []InferenceSummary `json:"inference,omitempty"`
}

// ParameterSummary counts tensors and values: all of them, and by what the optimizer does with them.
type ParameterSummary struct {
	Tensors    int `json:"tensors"`
	Elements   int `json:"elements"`
	Decayed    int `json:"decayed"`
	NotDecayed int `json:"not_decayed"`
	Frozen     int `json:"frozen"`
	// BF16Tensors and BF16 count the tensors, and their values, that graphs of precision bf16 take in bf16.
	BF16Tensors int `json:"bf16_tensors"`
	BF16        int `json:"bf16"`
	// Memory is the need of an f32 run that freezes no more than the bundle does and does not accumulate.
	Memory Memory `json:"memory"`
}

// InferenceSummary describes one inference graph.
type InferenceSummary struct {
	manifest.InferenceGraph
	// Bytes is the size of the file, WeightBytes that of the tensors in its weights.
	Bytes       int   `json:"bytes"`
	WeightBytes int64 `json:"weight_bytes"`
	// Parameters counts the inputs that are parameters or state of the bundle.
	Parameters int `json:"parameters"`
	// Nodes and Ops are as in GraphSummary.
	Nodes int       `json:"nodes"`
	Ops   []OpCount `json:"ops"`
}

// GraphSummary describes one graph.
type GraphSummary struct {
	manifest.Graph
	// Bytes is the size of the file.
	Bytes int `json:"bytes"`
	// Producer is the program that wrote it, with its version.
	Producer  string `json:"producer"`
	IRVersion int64  `json:"ir_version"`
	// Inputs and Outputs have the form "name dtype[shape]", in the graph's order.
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	// Nodes counts all nodes, including those of functions and subgraphs. It shadows the manifest's counts. Ops counts
	// them by operator, the most frequent first.
	Nodes int       `json:"nodes"`
	Ops   []OpCount `json:"ops"`
	// Functions names the model-local functions as "domain.name", sorted.
	Functions []string `json:"functions,omitempty"`
}

// OpCount is an operator ("domain.name" outside the default domain) and the number of its nodes.
type OpCount struct {
	Op    string `json:"op"`
	Nodes int    `json:"nodes"`
}

// Inspect summarizes the bundle. It reads the training graph once more for Steps.
func (b *Bundle) Inspect() Summary {
	m := b.Manifest
	s := Summary{
		Name: m.Name, Description: m.Description, License: m.License, Hash: b.Hash(),
		Inputs: m.Inputs, Scalars: m.Scalars, Outputs: m.Outputs, State: m.State, Buckets: m.Buckets,
		Dynamic: m.Dynamic, Parameters: ParameterSummary{Tensors: len(m.Parameters)},
	}
	for i, arena := range NewArenas(m, Policy{}) {
		s.Parameters.Memory.Add(arena.Memory(m.InTurn()[i].Optimizer, false, false))
	}
	s.Parameters.Memory.State = StateBytes(m.State, true)
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
		if p.Compute == manifest.BF16 {
			s.Parameters.BF16Tensors++
			s.Parameters.BF16 += n
		}
	}
	s.Steps = b.steps()
	for _, g := range m.Graphs {
		i := slices.IndexFunc(b.graphs, func(s GraphSummary) bool { return s.File == g.File })
		s.Graphs = append(s.Graphs, b.graphs[i])
	}
	for _, g := range m.Inference {
		s.Inference = append(s.Inference, summarizeInference(b, g))
	}
	return s
}

func summarizeInference(b *Bundle, g manifest.InferenceGraph) InferenceSummary {
	model := b.models[g.File]
	s := InferenceSummary{InferenceGraph: g, Bytes: proto.Size(model)}
	s.Nodes, s.Ops = countNodes(model)
	stored := b.Stored()
	for _, in := range model.Graph.Input {
		if _, ok := stored[in.GetName()]; ok {
			s.Parameters++
		}
	}
	for _, t := range b.frozen[g.Weights] {
		s.WeightBytes += t.Bytes
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
	for _, fn := range model.Functions {
		s.Functions = append(s.Functions, opName(fn.GetDomain(), fn.GetName()))
	}
	slices.Sort(s.Functions)
	s.Nodes, s.Ops = countNodes(model)
	return s
}

// countNodes counts a model's nodes, and those of each operator, the most frequent first.
func countNodes(model *onnxpb.ModelProto) (nodes int, list []OpCount) {
	ops := modelOps(model)
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		list = append(list, OpCount{op, ops[op]})
		nodes += ops[op]
	}
	slices.SortStableFunc(list, func(a, b OpCount) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return nodes, list
}

// modelOps counts a model's nodes by operator, those of each function once.
func modelOps(model *onnxpb.ModelProto) map[string]int {
	ops := map[string]int{}
	countOps(ops, model.Graph.Node)
	for _, fn := range model.Functions {
		countOps(ops, fn.Node)
	}
	return ops
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
