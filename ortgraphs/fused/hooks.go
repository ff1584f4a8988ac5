package fused

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Hook is a Go function that a graph calls when the work is queued that computes some of its outputs, as
// [ort.KernelLaunch.Host] says. The graph computes what the first hook waits for, calls it, computes what the second
// one waits for, and so on.
type Hook struct {
	// Outputs are those of the graph that it waits for; at most MaxHookOutputs.
	Outputs []string
	Call    func() error
}

// MaxHookOutputs is the largest number of outputs that a hook waits for.
const MaxHookOutputs = ort.MaxKernelPointers - 1

// HookOutput is the name of the output of a linked graph by which its hook i takes part in it. Nothing writes it: it is
// an f32 of one element.
func HookOutput(i int) string { return fmt.Sprintf("hook~%d", i) }

// hook adds a node for each hook. ONNX Runtime begins with the last node of a file that no other reads, and computes
// what that one reads first.
func (l *linking) hook(m *onnxpb.ModelProto, hooks []Hook) {
	if len(hooks) == 0 {
		return
	}
	for i, h := range slices.Backward(hooks) {
		call := ort.KernelCall{
			Inputs: len(h.Outputs), Outputs: []ort.KernelOutput{{DType: manifest.F32, Shape: []int{1}}},
			Launches: []ort.KernelLaunch{{Host: h.Call}},
		}
		c := l.node(call, nil, nil)
		m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{
			Name: proto.String(HookOutput(i)), OpType: proto.String(c.Op), Domain: proto.String(c.Domain),
			Attribute: c.Attributes, Input: h.Outputs, Output: []string{HookOutput(i)},
		})
		m.Graph.Output = append(m.Graph.Output, hookOutput(i))
	}
	if !slices.ContainsFunc(m.OpsetImport, func(o *onnxpb.OperatorSetIdProto) bool {
		return o.GetDomain() == ort.KernelDomain
	}) {
		m.OpsetImport = append(m.OpsetImport,
			&onnxpb.OperatorSetIdProto{Domain: proto.String(ort.KernelDomain), Version: proto.Int64(1)})
	}
}

// hookOutput declares the output of a hook.
func hookOutput(i int) *onnxpb.ValueInfoProto {
	one := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1}}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(HookOutput(i)),
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
			Shape:    &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{one}},
		}}},
	}
}

// Finished returns the outputs of the graph in the order in which it computes them, without hooks; those of a node
// together. Call it before Load.
func (p *Plan) Finished() ([][]string, error) {
	model, err := p.Draft()
	if err != nil {
		return nil, err
	}
	r, err := shapes.Infer(model, nil)
	if err != nil {
		return nil, err
	}
	at := map[*shapes.Node]int{}
	for i, n := range lifetime.Of(r).Nodes {
		at[n] = i
	}
	by := map[int][]string{}
	for _, o := range r.Outputs {
		if o.From != nil {
			by[at[o.From]] = append(by[at[o.From]], o.Name)
		}
	}
	var list [][]string
	for _, i := range slices.Sorted(maps.Keys(by)) {
		list = append(list, by[i])
	}
	return list, nil
}
