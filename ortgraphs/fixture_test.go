package ortgraphs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// fixture is a small valid bundle that a test changes before it is written.
type fixture struct {
	manifest *manifest.Bundle
	models   map[string]*onnxpb.ModelProto
	weights  []safetensors.Tensor
	files    map[string][]byte // written unchanged
}

func newFixture() *fixture {
	dims := func(d ...manifest.Dim) manifest.Shape { return append(manifest.Shape{}, d...) }
	b, t := manifest.Sym("B"), manifest.Sym("T_mel")
	f := &fixture{
		manifest: &manifest.Bundle{
			Version: 1, Name: "tiny",
			Inputs: []manifest.TensorSpec{
				{
					Name: "mel_spectrograms", DType: manifest.F32, Shape: dims(b, t, manifest.Fixed(4)),
					Lengths: "mel_lengths", Origin: "stage",
				},
				{Name: "mel_lengths", DType: manifest.I32, Shape: dims(b), Origin: "stage"},
				{
					Name: "text_sequences", DType: manifest.I32, Shape: dims(b, manifest.Sym("T_text")),
					Origin: "dataset",
				},
			},
			Outputs: []manifest.TensorSpec{
				{Name: "loss", DType: manifest.F32, Shape: dims()},
				{Name: "loss_weight", DType: manifest.F32, Shape: dims()},
				{Name: "metric.mel_loss", DType: manifest.F32, Shape: dims()},
			},
			Parameters: []manifest.Parameter{
				{Name: "out.weight", Shape: []int{4, 3}, Decay: true, Compute: manifest.BF16},
				{Name: "out.bias", Shape: []int{3}},
				{Name: "table", Shape: []int{2}, Frozen: true},
			},
			Buckets: []manifest.Bucket{{"T_mel": 10, "T_text": 5}, {"T_mel": 20, "T_text": 5}},
			Features: manifest.Features{
				SampleRate: 22050, NFFT: 512, WinLength: 512, HopLength: 256, Window: "hann", Center: true,
				PadMode: "constant", Power: 1, NMels: 4, MelScale: "slaney", MelNorm: "slaney", FMax: 11025, Log: "ln",
				LogFloor: 1e-5,
			},
			Pipeline:  []manifest.StageInstance{},
			Optimizer: manifest.Optimizer{Name: "adamw", LR: 0.001, Betas: [2]float64{0.9, 0.999}, Eps: 1e-8},
			Schedule:  manifest.Schedule{Name: "constant"},
			Graphs: []manifest.Graph{
				{File: "training_model.onnx", Kind: "train", Precision: "f32"},
				{File: "training_model.bf16.onnx", Kind: "train", Precision: "bf16"},
				{File: "eval_model.onnx", Kind: "eval", Precision: "f32"},
			},
			Accumulation: "exact",
			Baselines:    []manifest.Baseline{{Metric: "mel_loss", Target: "mel_spectrograms", Loss: "l1"}},
			Cost:         []manifest.Cost{{Bucket: 1, BatchSize: 8, FLOPs: 1, Bytes: 1}},
			Files:        map[string]string{},
		},
		models: map[string]*onnxpb.ModelProto{},
		weights: []safetensors.Tensor{
			{Name: "out.weight", DType: safetensors.F32, Shape: []int{4, 3}, Data: make([]byte, 48)},
			{Name: "out.bias", DType: safetensors.F32, Shape: []int{3}, Data: make([]byte, 12)},
			{Name: "table", DType: safetensors.F32, Shape: []int{2}, Data: make([]byte, 8)},
		},
		files: map[string][]byte{},
	}
	f.models["training_model.onnx"] = newModel(onnxpb.TensorProto_FLOAT, true)
	f.models["training_model.bf16.onnx"] = newModel(onnxpb.TensorProto_BFLOAT16, true)
	f.models["eval_model.onnx"] = newModel(onnxpb.TensorProto_FLOAT, false)
	return f
}

// newModel returns a graph with the fixture's signature. out.weight has the type compute. The graph omits
// text_sequences and, if it does not train, the seed.
func newModel(compute onnxpb.TensorProto_DataType, train bool) *onnxpb.ModelProto {
	f32 := onnxpb.TensorProto_FLOAT
	g := &onnxpb.GraphProto{
		Name: proto.String("g"),
		Input: []*onnxpb.ValueInfoProto{
			value("mel_spectrograms", f32, "batch", "frames", 4),
			value("mel_lengths", onnxpb.TensorProto_INT32, "batch"), value("out.weight", compute, 4, 3),
			value("out.bias", f32, 3), value("table", f32, 2),
		},
		Output: []*onnxpb.ValueInfoProto{value("loss", f32), value("loss_weight", f32)},
		Node: []*onnxpb.NodeProto{
			node("ReduceSum", "", "mel_spectrograms"), node("Identity", "", "out.bias"), node("Identity", "", "table"),
			node("Gelu", "xtts.fused.v1", "table"),
		},
	}
	if train {
		g.Input = append(g.Input, value("seed", onnxpb.TensorProto_INT64))
		g.Output = append(g.Output, value("metric.mel_loss", f32), value("grad.out.weight", compute, 4, 3),
			value("grad.out.bias", f32, 3))
	}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(10), ProducerName: proto.String("test"),
		OpsetImport: []*onnxpb.OperatorSetIdProto{opset("", 20), opset("xtts.fused.v1", 1)},
		Graph:       g,
		Functions: []*onnxpb.FunctionProto{{
			Domain: proto.String("xtts.fused.v1"), Name: proto.String("Gelu"), Input: []string{"x"},
			Output: []string{"y"}, OpsetImport: []*onnxpb.OperatorSetIdProto{opset("", 20)},
			Node: []*onnxpb.NodeProto{node("Erf", "", "x")},
		}},
	}
}

// nodes returns the number of newModel's nodes by operator.
func nodes() map[string]int {
	return map[string]int{"ReduceSum": 1, "Identity": 2, "xtts.fused.v1.Gelu": 1, "Erf": 1}
}

func opset(domain string, version int64) *onnxpb.OperatorSetIdProto {
	return &onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(version)}
}

func node(op, domain string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		Name: proto.String("n"), OpType: proto.String(op), Domain: proto.String(domain), Input: inputs,
		Output: []string{"y"},
	}
}

// value declares an input or output. A dimension is a name, a number or nil.
func value(name string, t onnxpb.TensorProto_DataType, dims ...any) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		switch d := d.(type) {
		case string:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		case int:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: shape}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
	}
}

// write writes the bundle to a new folder and returns it. Files that are already in the manifest's list keep their
// entry, right or wrong.
func (f *fixture) write(t testing.TB) string {
	t.Helper()
	for name, m := range f.models {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		f.files[name] = data
	}
	if f.weights != nil {
		var out bytes.Buffer
		if err := safetensors.Write(&out, f.weights, nil); err != nil {
			t.Fatal(err)
		}
		f.files[WeightsFile] = out.Bytes()
	}
	dir := t.TempDir()
	for name, data := range f.files {
		if _, ok := f.manifest.Files[name]; !ok {
			sum := sha256.Sum256(data)
			f.manifest.Files[name] = hex.EncodeToString(sum[:])
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(f.manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), data, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
