package frozen

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// every is the number of samples of a code of the test's graph: its code is the first of them times the weight 100.
const every = 4

// write writes a graph of codes and its weights, after a change, and returns the files of the bundle.
func write(t *testing.T, change func(*onnxpb.GraphProto)) map[string]string {
	t.Helper()
	value := func(name string, kind onnxpb.TensorProto_DataType, dims ...string) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim,
				&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}})
		}
		tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(kind)), Shape: shape}
		return &onnxpb.ValueInfoProto{
			Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
		}
	}
	constant := func(name string, kind onnxpb.TensorProto_DataType, value int64) *onnxpb.TensorProto {
		c := &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(kind)), Dims: []int64{1}}
		if kind == onnxpb.TensorProto_INT32 {
			c.Int32Data = []int32{int32(value)}
		} else {
			c.Int64Data = []int64{value}
		}
		return c
	}
	node := func(op, output string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: inputs, Output: []string{output}}
	}
	f32, i32, i64 := onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64
	cast := node("Cast", "codes", "loud")
	cast.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(i32))},
	}
	g := &onnxpb.GraphProto{
		Name: proto.String("codes"),
		Input: []*onnxpb.ValueInfoProto{
			value(waveform, f32, "B", "T"), value(waveformLengths, i32, "B"), value("factor", f32),
		},
		Output: []*onnxpb.ValueInfoProto{value("codes", i32, "B", "N"), value("code_lengths", i32, "B")},
		Initializer: []*onnxpb.TensorProto{
			constant("zero", i64, 0), constant("end", i64, math.MaxInt32), constant("axis", i64, 1),
			constant("step", i64, every), constant("more", i32, every-1), constant("by", i32, every),
		},
		Node: []*onnxpb.NodeProto{
			node("Slice", "firsts", waveform, "zero", "end", "axis", "step"), node("Mul", "loud", "firsts", "factor"),
			cast, node("Add", "up", waveformLengths, "more"), node("Div", "code_lengths", "up", "by"),
		},
	}
	change(g)
	model := &onnxpb.ModelProto{
		IrVersion:   proto.Int64(10),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(20)}}, Graph: g,
	}
	data, err := proto.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"g.onnx": filepath.Join(t.TempDir(), "g.onnx"), "g.safetensors": filepath.Join(t.TempDir(), "g.safetensors"),
	}
	if err := os.WriteFile(files["g.onnx"], data, 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(files["g.safetensors"])
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// 100
	if err := safetensors.Write(
		out,
		[]safetensors.Tensor{{Name: "factor", DType: safetensors.F32, Shape: []int{}, Data: []byte{0, 0, 0xc8, 0x42}}},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	return files
}

const both = `{"graph": "g.onnx", "weights": "g.safetensors"}`

func newStage() stage.Stage { return New("codes", "code_lengths", manifest.I32, nil) }

func TestStageConforms(t *testing.T) {
	stagetest.Run(t, newStage, stagetest.Options{
		Manifest: "../plugin.json", Stage: "codes", Config: both, Files: write(t, func(*onnxpb.GraphProto) {}),
		Buckets: []manifest.Bucket{{"T_wav": 41, "T_code": 11}, {"T_wav": 90, "T_code": 30}},
	})
}

// conditioning changes the graph into one of f32[B, N, 1].
func conditioning(g *onnxpb.GraphProto) {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String("last"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
		Int64Data: []int64{2},
	})
	g.Node[2] = &onnxpb.NodeProto{
		OpType: proto.String("Unsqueeze"), Input: []string{"loud", "last"}, Output: []string{"conditioning_mel"},
	}
	g.Node[4].Output[0] = "conditioning_lengths"
	shape := proto.CloneOf(g.Output[0].GetType().GetTensorType().Shape)
	shape.Dim = append(shape.Dim,
		&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1}})
	g.Output[0].Type.Value = &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1), Shape: shape},
	}
	g.Output[0].Name, g.Output[1].Name = proto.String("conditioning_mel"), proto.String("conditioning_lengths")
}

func TestConditioningConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return New("conditioning_mel", "conditioning_lengths", manifest.F32, nil) },
		stagetest.Options{
			Manifest: "../plugin.json", Stage: "conditioning", Config: both, Files: write(t, conditioning),
			Buckets: []manifest.Bucket{{"T_wav": 41, "T_cond": 11, "n_mels": 1}},
		})
}

func TestRows(t *testing.T) {
	s := New("codes", "code_lengths", manifest.I32, nil)
	defer s.Close()
	files := write(t, func(*onnxpb.GraphProto) {})
	if _, err := s.open(files["g.onnx"], files["g.safetensors"]); err != nil {
		t.Fatal(err)
	}
	wave := memory(t, 12*4)
	out := memory(t, 3*4)
	copy(view(wave), []float32{0.5, 9, 9, 9, -0.25, 9, 9, 9, 1, 9, 9, 9})
	for samples, want := range map[int][]int32{0: {}, 1: {50}, 4: {50}, 5: {50, -25}, 9: {50, -25, 100}} {
		n, reason, err := s.row(t.Context(), wave, samples, out, []int{1, 3})
		if err != nil || reason != "" || !slices.Equal(codes(out)[:n], want) {
			t.Errorf("%d samples: %v, %q, %v; want %v", samples, codes(out)[:n], reason, err, want)
		}
	}
	if _, reason, err := s.row(t.Context(), wave, 9, out, []int{1, 2}); err != nil ||
		reason != "9 samples make 3 elements of codes, more than the bucket's 2" {
		t.Errorf("%q, %v", reason, err)
	}
	view(wave)[2] = float32(math.NaN())
	if _, reason, err := s.row(t.Context(), wave, 9, out, []int{1, 3}); err != nil || reason != "sample 2 is NaN" {
		t.Errorf("%q, %v", reason, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for want, change := range map[string]func(*onnxpb.GraphProto){
		"g.onnx takes gain, which is neither waveform, waveform_lengths nor a tensor of its weights": func(
			g *onnxpb.GraphProto,
		) {
			g.Input[2].Name, g.Node[1].Input[1] = proto.String("gain"), "gain"
		},
		"g.onnx returns codes of type i64, but the port takes i32": func(g *onnxpb.GraphProto) {
			g.Node[2].Attribute[0].I = proto.Int64(int64(onnxpb.TensorProto_INT64))
			g.Output[0].Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_INT64))
		},
		"g.onnx returns no codes": func(g *onnxpb.GraphProto) {
			g.Output[0].Name = proto.String("numbers")
			g.Node[2].Output[0] = "numbers"
		},
	} {
		s := New("codes", "code_lengths", manifest.I32, nil)
		files := write(t, change)
		_, err := s.open(files["g.onnx"], files["g.safetensors"])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		s.Close()
	}
}
