package variant

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// frozen is the inference graph of Frozen in bundle.json: as many elements as there are hops that have begun.
const frozen = `{"name": "frames", "kind": "stage", "file": "frames.onnx", "weights": "frames.safetensors", "sample_rate": 22050,
"inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"},
           {"name": "waveform_lengths", "dtype": "i32", "shape": ["B"]}],
"outputs": [{"name": "conditioning_mel", "dtype": "f32", "shape": ["B", "T_cond", 20], "lengths": "conditioning_lengths"},
            {"name": "conditioning_lengths", "dtype": "i32", "shape": ["B"]}]}`

// Frozen gives pico an inference graph with weights, which the stage conditioning runs in place of the reference's
// spectrogram: a number for each band, times the first sample of each hop.
func Frozen(dir string, m *manifest.Bundle) error {
	at := slices.IndexFunc(m.Pipeline, func(s manifest.StageInstance) bool { return s.Name == "reference" })
	if at < 0 {
		return errors.New("it has no stage instance reference")
	}
	var g manifest.InferenceGraph
	if err := json.Unmarshal([]byte(frozen), &g); err != nil {
		return err
	}
	m.Inference = append(m.Inference, g)
	s := &m.Pipeline[at]
	s.Stage, s.Config = "conditioning", map[string]any{"graph": g.File, "weights": g.Weights}
	outputs := map[string]string{}
	for _, tensor := range s.Outputs {
		port := g.Outputs[1].Name
		if slices.ContainsFunc(m.Inputs, func(in manifest.TensorSpec) bool {
			return in.Name == tensor && in.Lengths != ""
		}) {
			port = g.Outputs[0].Name
		}
		outputs[port] = tensor
	}
	s.Outputs = outputs

	data, err := proto.Marshal(frozenModel(g.Name))
	if err != nil {
		return err
	}
	var weights bytes.Buffer
	if err := safetensors.Write(
		&weights, []safetensors.Tensor{constant("bands", []int{bands}, 0.75)}, nil,
	); err != nil {
		return err
	}
	for name, data := range map[string][]byte{g.File: data, g.Weights: weights.Bytes()} {
		m.Files[name] = ""
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// bands are those of the graph of Frozen.
const bands = 20

// frozenModel is the graph of Frozen.
func frozenModel(name string) *onnxpb.ModelProto {
	dims := func(v *onnxpb.ValueInfoProto, kind onnxpb.TensorProto_DataType, names ...string) *onnxpb.ValueInfoProto {
		t := v.GetType().GetTensorType()
		t.ElemType = proto.Int32(int32(kind))
		for i, name := range names {
			t.Shape.Dim[i].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}
		}
		return v
	}
	number := func(name string, value int32) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{
			Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_INT32)), Int32Data: []int32{value},
		}
	}
	const f32, i32, hop = onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, 256
	return &onnxpb.ModelProto{
		IrVersion:   proto.Int64(10),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String(name),
			Input: []*onnxpb.ValueInfoProto{
				dims(float("waveform", 0, 0), f32, "B", "T_wav"), dims(float("waveform_lengths", 0), i32, "B"),
				float("bands", bands),
			},
			Output: []*onnxpb.ValueInfoProto{
				dims(float("conditioning_mel", 0, 0, bands), f32, "B", "T_cond"),
				dims(float("conditioning_lengths", 0), i32, "B"),
			},
			Initializer: []*onnxpb.TensorProto{
				axes("first", 0), axes("end", math.MaxInt32), axes("time", 1), axes("hop", hop), axes("last", 2),
				number("more", hop-1), number("by", hop),
			},
			Node: []*onnxpb.NodeProto{
				node("Slice", "firsts", "waveform", "first", "end", "time", "hop"),
				node("Unsqueeze", "column", "firsts", "last"),
				node("Mul", "conditioning_mel", "column", "bands"),
				node("Add", "up", "waveform_lengths", "more"), node("Div", "conditioning_lengths", "up", "by"),
			},
		},
	}
}
