package fused_test

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// loaded are programs that are never launched.
type loaded struct{}

func (loaded) Launch() uintptr                               { return 1 }
func (loaded) CooperativeLaunch() uintptr                    { return 1 }
func (loaded) Function(string, string, int) (uintptr, error) { return 1, nil }
func (loaded) Multiplier() (*ort.Multiplier, error)          { return orttest.Multiplier, nil }
func (loaded) Convolver() (*ort.Convolver, error)            { return orttest.Convolver, nil }
func (loaded) Close() error                                  { return nil }

// TestCapturable: fusing removes what CUDA graphs cannot replay, here the Concat of parts of different sizes. Without
// its kernel, it is found again.
func TestCapturable(t *testing.T) {
	data, err := os.ReadFile("../testdata/pico/training_model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	sizes := shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3}
	r, err := shapes.Infer(m, sizes)
	if err != nil {
		t.Fatal(err)
	}
	mel := r.Value("mel_spectrograms")
	m.Graph.Node = append(m.Graph.Node,
		node("Neg", "", "parts/a", "mel_spectrograms"),
		node("ReduceSum", "keepdims", "parts/b", "mel_spectrograms", "parts/axes"),
		node("Concat", "axis", "joined", "parts/a", "parts/b"),
	)
	m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{
		Name: proto.String("parts/axes"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
		Int64Data: []int64{1},
	})
	shape := &onnxpb.TensorShapeProto{}
	for i, n := range mel.Shape {
		if i == 1 {
			n++
		}
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}})
	}
	m.Graph.Output = append(m.Graph.Output, &onnxpb.ValueInfoProto{
		Name: proto.String("joined"), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape,
			}}},
	})
	if found := lint.Check(m, []shapes.Sizes{sizes}); len(found) != 1 || found[0].Rule != lint.CUDAGraph {
		t.Fatalf("as exported: %v", found)
	}
	if data, err = proto.Marshal(m); err != nil {
		t.Fatal(err)
	}
	p, err := fused.NewPlan(data, sizes, fused.Form{})
	if err != nil {
		t.Fatal(err)
	}
	p.Load(loaded{})
	for name, c := range map[string]struct {
		plain func(int) bool
		want  int
	}{"fused": {nil, 0}, "plain": {func(int) bool { return true }, 1}} {
		linked, _, err := p.Link(c.plain)
		if err != nil {
			t.Fatal(err)
		}
		m := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(linked, m); err != nil {
			t.Fatal(err)
		}
		if found := lint.Check(m, []shapes.Sizes{{}}); len(found) != c.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func node(op, attribute, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}}
	if attribute != "" {
		n.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String(attribute), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(1)},
		}
	}
	return n
}

// TestEmbeddedBundlesAreCapturable: nothing is found in the fused graphs of the embedded bundles.
func TestEmbeddedBundlesAreCapturable(t *testing.T) {
	for _, file := range []string{
		"myxtts-nano/training_model.onnx", "myxtts-nano/training_model.bf16.onnx",
		"myxtts-multispeaker/training_model.onnx",
	} {
		data, err := os.ReadFile("../builtin/" + file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fused.NewPlan(data, shapes.Sizes{"B": 8, "T_text": 128, "T_mel": 256, "T_ref_mel": 128}, fused.Form{})
		if err != nil {
			t.Fatal(err)
		}
		p.Load(loaded{})
		linked, _, err := p.Link(nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(linked, m); err != nil {
			t.Fatal(err)
		}
		if found := lint.Check(m, []shapes.Sizes{{}}); len(found) > 0 {
			t.Errorf("%s: %v", file, found)
		}
	}
}
