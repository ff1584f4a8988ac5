package device

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestCapturable: only a graph without findings is captured.
func TestCapturable(t *testing.T) {
	b, err := ortgraphs.Open(filepath.Join("..", "..", "..", "ortgraphs", "testdata", "pico"), "")
	if err != nil {
		t.Fatal(err)
	}
	const file = "training_model.onnx"
	check := Capturable("a b", b)
	if err := check(file, nil); err != nil {
		t.Error(err)
	}
	// The mean of the targets, by a count from shapes: the host computes it, and a captured graph keeps it.
	g := b.Model(file).Graph
	g.Node = append(g.Node,
		&onnxpb.NodeProto{OpType: proto.String("Size"), Input: []string{"mel_spectrograms"}, Output: []string{"n"}},
		&onnxpb.NodeProto{OpType: proto.String("Cast"), Input: []string{"n"}, Output: []string{"count"},
			Attribute: []*onnxpb.AttributeProto{
				{Name: proto.String("to"), I: proto.Int64(1), Type: onnxpb.AttributeProto_INT.Enum()},
			}}, &onnxpb.NodeProto{
			OpType: proto.String("Div"), Input: []string{"mel_spectrograms", "count"}, Output: []string{"mean"},
		},
	)
	err = check(file, nil)
	if err == nil || !strings.HasPrefix(err.Error(), file+": memcpy: ") ||
		hint.Of(err) != "xtts-host graph lint 'a b' lists all" {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
}

// TestFusedIsCapturable: a fused graph is judged by its own nodes.
func TestFusedIsCapturable(t *testing.T) {
	check := Capturable("x", nil)
	value := func(name string, size int64) *onnxpb.ValueInfoProto {
		dim := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: size}}
		return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(1),
				Shape:    &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{dim}},
			}}}}
	}
	for node, want := range map[*onnxpb.NodeProto]string{
		{
			OpType: proto.String("KernelCall_F32"), Domain: proto.String("xtts.host"), Input: []string{"a", "b"},
			Output: []string{"c"},
		}: "",
		{OpType: proto.String("Concat"), Input: []string{"a", "b"}, Output: []string{"c"},
			Attribute: []*onnxpb.AttributeProto{
				{Name: proto.String("axis"), I: proto.Int64(0), Type: onnxpb.AttributeProto_INT.Enum()},
			}}: "t.onnx, fused: cuda-graph: ",
		// ONNX Runtime refuses to capture it
		{OpType: proto.String("Scan"), Input: []string{"a", "b"}, Output: []string{"c"}}: "t.onnx, fused: host-sync: ",
	} {
		model, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Node: []*onnxpb.NodeProto{node}, Input: []*onnxpb.ValueInfoProto{value("a", 2), value("b", 3)},
			Output: []*onnxpb.ValueInfoProto{value("c", 5)}}})
		if err != nil {
			t.Fatal(err)
		}
		err = check("t.onnx", model)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", node.GetOpType(), err, want)
		}
	}
}
