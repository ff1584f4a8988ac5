package ortgraphs

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const codesFile, codesWeights, stepFile = "codes.onnx", "codes.safetensors", "step.onnx"

// withInference returns a fixture with two inference graphs: one with weights of its own, and one with parameters and a
// cache.
func withInference(t testing.TB) *fixture {
	f := newFixture()
	b, samples := manifest.Sym("B"), manifest.Sym("T_wav")
	cache := func(symbol string) manifest.Shape { return manifest.Shape{b, manifest.Fixed(2), manifest.Sym(symbol)} }
	f.manifest.Inference = []manifest.InferenceGraph{
		{Name: "codes", Kind: manifest.InferenceStage, File: codesFile, Weights: codesWeights, SampleRate: 22050,
			Inputs: []manifest.TensorSpec{
				{Name: "waveform", DType: manifest.F32, Shape: manifest.Shape{b, samples}, Lengths: "waveform_lengths"},
				{Name: "waveform_lengths", DType: manifest.I32, Shape: manifest.Shape{b}}},
			Outputs: []manifest.TensorSpec{
				{Name: "codes", DType: manifest.I32, Shape: manifest.Shape{b, manifest.Sym("T_code")}},
			}},
		{Name: "step", Kind: manifest.InferenceDecode, File: stepFile,
			Inputs:  []manifest.TensorSpec{{Name: "past", DType: manifest.F32, Shape: cache("T_past")}},
			Outputs: []manifest.TensorSpec{{Name: "next", DType: manifest.F32, Shape: cache("T_next"), Feeds: "past"}}},
	}
	f32, i32 := onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32
	f.models[codesFile] = plainModel(
		[]*onnxpb.ValueInfoProto{value("waveform", f32, "batch",
			"n"), value("waveform_lengths", i32, "batch"), value("book", f32, 5), value(
			"hop", onnxpb.TensorProto_INT64)},
		value("codes", i32, "batch", "steps"))
	f.models[stepFile] = plainModel(
		[]*onnxpb.ValueInfoProto{value("past", f32, "batch", 2, "n"), value("out.bias", f32, 3)},
		value("next", f32, "batch", 2, "m"))
	f.setWeights(t, []safetensors.Tensor{
		{Name: "book", DType: safetensors.F32, Shape: []int{5}, Data: make([]byte, 20)},
		{Name: "hop", DType: safetensors.I64, Shape: []int{}, Data: make([]byte, 8)}})
	return f
}

// setWeights writes the weights of the first inference graph.
func (f *fixture) setWeights(t testing.TB, tensors []safetensors.Tensor) {
	var out bytes.Buffer
	if err := safetensors.Write(&out, tensors, nil); err != nil {
		t.Fatal(err)
	}
	f.files[codesWeights] = out.Bytes()
}

func plainModel(inputs []*onnxpb.ValueInfoProto, outputs ...*onnxpb.ValueInfoProto) *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(10), OpsetImport: []*onnxpb.OperatorSetIdProto{opset("", 20)},
		Graph: &onnxpb.GraphProto{Input: inputs, Output: outputs, Node: []*onnxpb.NodeProto{node("Identity", "",
			inputs[0].GetName())}},
	}
}

func TestInferenceGraphs(t *testing.T) {
	f := withInference(t)
	b, err := Load(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	s := b.Inspect().Inference
	if len(s) != 2 || s[0].WeightBytes != 28 || s[0].Parameters != 0 || s[1].Parameters != 1 || s[1].Nodes != 1 ||
		b.Model(stepFile) == nil {
		t.Errorf("%+v", s)
	}
	if g, ok := b.Manifest.InferenceGraph("step"); !ok || g.File != stepFile {
		t.Errorf("step is %+v", g)
	}
	hash := b.Hash()
	b.Manifest.Files[stepFile], b.Manifest.Inference[1].Outputs[0].Feeds = "", ""
	if b.Hash() != hash {
		t.Error("the hash depends on how the model speaks, which no training does")
	}
	b.Manifest.Inference[0].SampleRate = 24000
	if b.Hash() == hash {
		t.Error("the hash does not depend on the inference graphs of stages")
	}
}

func TestInferenceRefusals(t *testing.T) {
	f32 := onnxpb.TensorProto_FLOAT
	for want, change := range map[string]func(f *fixture){
		`codes.onnx: input "book": missing`: func(f *fixture) {
			g := f.models[codesFile].Graph
			g.Input = append(g.Input[:2:2], g.Input[3])
		},
		`codes.onnx: input "waveform_lengths": missing`: func(f *fixture) {
			g := f.models[codesFile].Graph
			g.Input = append(g.Input[:1:1], g.Input[2:]...)
		},
		`codes.onnx: input "out": is not in its inputs, nor a parameter or state, nor in codes.safetensors`: func(
			f *fixture,
		) {
			f.models[codesFile].Graph.Input = append(f.models[codesFile].Graph.Input, value("out", f32))
		},
		`codes.onnx: input "hop": is f32, bundle.json says i64`: func(f *fixture) {
			f.models[codesFile].Graph.Input[3] = value("hop", f32)
		},
		`codes.onnx: input "book": has shape [6], bundle.json says [5]`: func(f *fixture) {
			f.models[codesFile].Graph.Input[2] = value("book", f32, 6)
		},
		`codes.onnx: output "codes": is f32, bundle.json says i32`: func(f *fixture) {
			f.models[codesFile].Graph.Output[0] = value("codes", f32, "b", "t")
		},
		`codes.onnx: input "book": has a default value`: func(f *fixture) {
			f.models[codesFile].Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("book")}}
		},
		`codes.onnx: ir_version: 11`: func(f *fixture) { f.models[codesFile].IrVersion = proto.Int64(11) },
		`step.onnx: input "seed": is not in its inputs, nor a parameter or state`: func(f *fixture) {
			f.models[stepFile].Graph.Input[1] = value("seed", onnxpb.TensorProto_INT64)
		},
		`step.onnx: input "out.bias": has shape [2], bundle.json says [3]`: func(f *fixture) {
			f.models[stepFile].Graph.Input[1] = value("out.bias", f32, 2)
		},
		`step.onnx: output "next": missing`: func(f *fixture) {
			f.models[stepFile].Graph.Output = nil
		},
		`codes.safetensors: header: not a valid safetensors file`: func(f *fixture) {
			f.files[codesWeights] = []byte("no")
		},
		`bundle.json: inference[1]: params.safetensors has the parameters: a graph`: func(f *fixture) {
			f.manifest.Inference[1].Weights = WeightsFile
		},
		`bundle.json: inference[1]: other.safetensors is not listed in files`: func(f *fixture) {
			f.manifest.Inference[1].Weights = "other.safetensors"
		},
		`bundle.json: inference[1]: weights is codes.onnx, a graph: they are in a`: func(f *fixture) {
			f.manifest.Inference[1].Weights = codesFile
		},
		`bundle.json: inference[1]: weights is step.onnx, a graph: they are in a`: func(f *fixture) {
			f.manifest.Inference[1].Weights = stepFile
		},
		`table.txt: header: not a valid safetensors file`: func(f *fixture) {
			f.manifest.Inference[1].Weights, f.files["table.txt"] = "table.txt", []byte("a table")
		},
		`codes.safetensors: tensor "table": has the name of a parameter or of state`: func(f *fixture) {
			f.setWeights(t, one("book", 5, "hop", "table"))
		},
		`codes.safetensors: tensor "odd": is I8, which graphs do not take`: func(f *fixture) {
			f.setWeights(t, append(one("book", 5, "hop"),
				safetensors.Tensor{Name: "odd", DType: safetensors.I8, Shape: []int{}, Data: []byte{1}}))
		},
		`codes.onnx: input "hop": is not in its inputs`: func(f *fixture) {
			f.setWeights(t, nil)
		},
		`codes.onnx: input "waveform": is in inputs and in codes.safetensors`: func(f *fixture) {
			f.setWeights(t, one("book", 5, "hop", "waveform"))
		},
	} {
		f := withInference(t)
		change(f)
		_, err := Load(f.write(t))
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// one returns the weights of the first inference graph: the first tensor has n values, the second is its i64 scalar,
// and others are scalars.
func one(name string, n int, scalar string, more ...string) []safetensors.Tensor {
	list := []safetensors.Tensor{
		{Name: name, DType: safetensors.F32, Shape: []int{n}, Data: make([]byte, 4*n)},
		{Name: scalar, DType: safetensors.I64, Shape: []int{}, Data: make([]byte, 8)},
	}
	for _, name := range more {
		list = append(list,
			safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{}, Data: make([]byte, 4)})
	}
	return list
}
