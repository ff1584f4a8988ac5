package ortgraphs

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const trainFile, bf16File, evalFile = "training_model.onnx", "training_model.bf16.onnx", "eval_model.onnx"

// refusals are changes to a valid bundle; want is in the message, and is all of it that is wrong.
var refusals = map[string]struct {
	change func(*fixture)
	want   string
}{
	"IR version": {
		func(f *fixture) { f.models[trainFile].IrVersion = proto.Int64(11) },
		"training_model.onnx: ir_version: 11, must be 10 or lower",
	},
	"opset": {
		func(f *fixture) { f.models[trainFile].OpsetImport[0].Version = proto.Int64(21) },
		"training_model.onnx: opset_import: opset 21, must be 20",
	},
	"no opset": {
		func(f *fixture) { f.models[trainFile].OpsetImport = f.models[trainFile].OpsetImport[1:] },
		"training_model.onnx: opset_import: names no opset, must name 20",
	},
	"opset of a function": {
		func(f *fixture) { f.models[trainFile].Functions[0].OpsetImport[0].Version = proto.Int64(18) },
		"training_model.onnx: function xtts.fused.v1.Gelu opset_import: opset 18, must be 20",
	},
	"foreign domain": {
		func(f *fixture) {
			f.models[trainFile].OpsetImport = append(f.models[trainFile].OpsetImport, opset("com.microsoft", 1))
		},
		`training_model.onnx: opset_import: domain "com.microsoft" is neither`,
	},
	"foreign operator": {
		func(f *fixture) { f.models[trainFile].Graph.Node[3].OpType = proto.String("FusedGelu") },
		`training_model.onnx: node 3 "n" (FusedGelu): the model has no function of that name in domain "xtts.fused.v1"`,
	},
	"node counts": {
		func(f *fixture) { f.manifest.Graphs[0].Nodes = nodes(); f.manifest.Graphs[0].Nodes["Identity"] = 3 },
		"training_model.onnx: nodes: 2 of Identity, bundle.json says 3",
	},
	"node counts with an operator that is not there": {
		func(f *fixture) { f.manifest.Graphs[0].Nodes = nodes(); f.manifest.Graphs[0].Nodes["MatMul"] = 1 },
		"training_model.onnx: nodes: 0 of MatMul, bundle.json says 1",
	},
	"random operator": {
		func(f *fixture) { f.models[trainFile].Graph.Node[0].OpType = proto.String("RandomNormalLike") },
		`training_model.onnx: node 0 "n" (RandomNormalLike): draws its own random numbers`,
	},
	"random operator in a function": {
		func(f *fixture) { f.models[trainFile].Functions[0].Node[0].OpType = proto.String("Bernoulli") },
		`training_model.onnx: function xtts.fused.v1.Gelu node 0 "n" (Bernoulli): draws its own random numbers`,
	},
	"random operator in a branch": {
		func(f *fixture) {
			f.models[trainFile].Graph.Node[0].Attribute = []*onnxpb.AttributeProto{{
				Name: proto.String("then_branch"),
				G:    &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("Multinomial", "", "x")}},
			}}
		},
		`training_model.onnx: node 0 "n" (ReduceSum) attribute "then_branch" node 0 "n" (Multinomial): draws`,
	},
	"training dropout": {
		func(f *fixture) {
			f.models[trainFile].Graph.Node[0] = node("Dropout", "ai.onnx", "x", "ratio", "training")
		},
		`training_model.onnx: node 0 "n" (Dropout): draws its own random numbers`,
	},
	"external data": {
		func(f *fixture) {
			f.models[evalFile].Graph.Initializer = []*onnxpb.TensorProto{{
				Name: proto.String("table0"), DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
				ExternalData: []*onnxpb.StringStringEntryProto{
					{Key: proto.String("location"), Value: proto.String("../secret")},
				},
			}}
		},
		`eval_model.onnx: initializer "table0": has its data in "../secret"`,
	},
	"external data with a key twice": {
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{outside("params.safetensors", "location",
				"/etc/passwd")}
		},
		`training_model.onnx: initializer "w": has the key "location" twice
  training_model.onnx: initializer "w": has its data in "/etc/passwd", which is not a file of the bundle`,
	},
	"external data before its file": {
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{outside("params.safetensors", "offset",
				"-4096")}
		},
		`training_model.onnx: initializer "w": has the impossible offset "-4096"`,
	},
	"memory of the process": { // ONNX Runtime's own mark for an address
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{outside("*/_ORT_MEM_ADDR_/*", "offset",
				"4096")}
		},
		`training_model.onnx: initializer "w": has its data in "*/_ORT_MEM_ADDR_/*", which is not a file of the bundle`,
	},
	"external data of a function's default": {
		func(f *fixture) {
			f.models[trainFile].Functions[0].AttributeProto = []*onnxpb.AttributeProto{
				{Name: proto.String("bias"), T: outside("../secret", "offset", "0")},
			}
		},
		`training_model.onnx: function xtts.fused.v1.Gelu attribute "bias" "w": has its data in "../secret", which is not a file of the bundle`,
	},
	"shape beyond all memory": {
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{{
				Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{1 << 62, 1 << 62},
				RawData: []byte("1234"),
			}}
		},
		`training_model.onnx: initializer "w": has the impossible shape [4611686018427387904 4611686018427387904]`,
	},
	"shape of another constant": {
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{
				{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{1 << 40}, RawData: []byte("1234")},
			}
		},
		`training_model.onnx: initializer "w": has 4 bytes for 1099511627776 values of 4 bytes`,
	},
	"external data of a constant": {
		func(f *fixture) {
			f.models[evalFile].Graph.Node[0].Attribute = []*onnxpb.AttributeProto{{
				Name: proto.String("value"), T: &onnxpb.TensorProto{DataLocation: onnxpb.TensorProto_EXTERNAL.Enum()},
			}}
		},
		`eval_model.onnx: node 0 "n" (ReduceSum) attribute "value" "": has its data in ""`,
	},
	"unknown input": {
		func(f *fixture) { f.models[trainFile].Graph.Input[1].Name = proto.String("mel_len") },
		`training_model.onnx: input "mel_len": is neither in inputs nor a parameter, state or the seed`,
	},
	"input twice": {
		func(f *fixture) { g := f.models[trainFile].Graph; g.Input = append(g.Input, g.Input[1]) },
		`training_model.onnx: input "mel_lengths": occurs twice`,
	},
	"input with a default": {
		func(f *fixture) {
			f.models[trainFile].Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("out.bias")}}
		},
		`training_model.onnx: input "out.bias": has a default value`,
	},
	"dtype of an input": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[1] = value("mel_lengths", onnxpb.TensorProto_INT64, "batch")
		},
		`training_model.onnx: input "mel_lengths": is i64, bundle.json says i32`,
	},
	"dtype unknown to the contract": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[1] = value("mel_lengths", onnxpb.TensorProto_STRING, "batch")
		},
		`training_model.onnx: input "mel_lengths": is STRING, bundle.json says i32`,
	},
	"not a tensor": {
		func(f *fixture) { f.models[trainFile].Graph.Input[1].Type = nil },
		`training_model.onnx: input "mel_lengths": is not a tensor`,
	},
	"no shape": {
		func(f *fixture) { f.models[trainFile].Graph.Input[1].GetType().GetTensorType().Shape = nil },
		`training_model.onnx: input "mel_lengths": declares no shape, bundle.json says [B]`,
	},
	"rank": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[1] = value("mel_lengths", onnxpb.TensorProto_INT32, "batch", 1)
		},
		`training_model.onnx: input "mel_lengths": has shape [batch,1], bundle.json says [B]`,
	},
	"number": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[0] = value("mel_spectrograms", onnxpb.TensorProto_FLOAT, "batch", "frames",
				5)
		},
		`training_model.onnx: input "mel_spectrograms": has shape [batch,frames,5], bundle.json says [B,T_mel,4]`,
	},
	"baked in": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[0] = value("mel_spectrograms", onnxpb.TensorProto_FLOAT, "batch", 10, 4)
		},
		`training_model.onnx: input "mel_spectrograms": has shape [batch,10,4]: dimension 1 must be dynamic`,
	},
	"unnamed dimension": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[0] = value("mel_spectrograms", onnxpb.TensorProto_FLOAT, "batch", nil, 4)
		},
		`training_model.onnx: input "mel_spectrograms": has shape [batch,?,4]: dimension 1 must be dynamic`,
	},
	"one name for two symbols": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[0] = value("mel_spectrograms", onnxpb.TensorProto_FLOAT, "batch", "batch",
				4)
		},
		`training_model.onnx: input "mel_spectrograms": the graph calls both B and T_mel "batch"`,
	},
	"shape of a parameter": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[2] = value("out.weight", onnxpb.TensorProto_FLOAT, 3, 4)
		},
		`training_model.onnx: input "out.weight": has shape [3,4], bundle.json says [4,3]`,
	},
	"dynamic parameter": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[2] = value("out.weight", onnxpb.TensorProto_FLOAT, "n", 3)
		},
		`training_model.onnx: input "out.weight": has shape [n,3], bundle.json says [4,3]`,
	},
	"f32 weights in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Input[2] = value("out.weight", onnxpb.TensorProto_FLOAT, 4, 3)
		},
		`training_model.bf16.onnx: input "out.weight": is f32, bundle.json says bf16`,
	},
	"bf16 weights in the f32 graph": {
		func(f *fixture) {
			f.models[trainFile].Graph.Input[2] = value("out.weight", onnxpb.TensorProto_BFLOAT16, 4, 3)
		},
		`training_model.onnx: input "out.weight": is bf16, bundle.json says f32`,
	},
	"bf16 vector in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Input[3] = value("out.bias", onnxpb.TensorProto_BFLOAT16, 3)
		},
		`training_model.bf16.onnx: input "out.bias": is bf16, bundle.json says f32`,
	},
	"f16 weights in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Input[2] = value("out.weight", onnxpb.TensorProto_FLOAT16, 4, 3)
		},
		`training_model.bf16.onnx: input "out.weight": is f16, bundle.json says bf16`,
	},
	"bf16 batch in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Input[0] = value("mel_spectrograms", onnxpb.TensorProto_BFLOAT16, "batch",
				"frames", 4)
		},
		`training_model.bf16.onnx: input "mel_spectrograms": is bf16, bundle.json says f32`,
	},
	"f16 gradient in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Output[3] = value("grad.out.weight", onnxpb.TensorProto_FLOAT16, 4, 3)
		},
		`training_model.bf16.onnx: output "grad.out.weight": is f16, bundle.json says bf16`,
	},
	"bf16 gradient of a vector in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Output[4] = value("grad.out.bias", onnxpb.TensorProto_BFLOAT16, 3)
		},
		`training_model.bf16.onnx: output "grad.out.bias": is bf16, bundle.json says f32`,
	},
	"shape of a gradient in the bf16 graph": {
		func(f *fixture) {
			f.models[bf16File].Graph.Output[3] = value("grad.out.weight", onnxpb.TensorProto_BFLOAT16, 3, 4)
		},
		`training_model.bf16.onnx: output "grad.out.weight": has shape [3,4], bundle.json says [4,3]`,
	},
	"no gradient in the bf16 graph": {
		func(f *fixture) { f.models[bf16File].Graph.Output = f.models[bf16File].Graph.Output[:4] },
		`training_model.bf16.onnx: output "grad.out.bias": missing`,
	},
	"loss in bf16": {
		func(f *fixture) { f.models[bf16File].Graph.Output[0] = value("loss", onnxpb.TensorProto_BFLOAT16) },
		`training_model.bf16.onnx: output "loss": is bf16, bundle.json says f32`,
	},
	"bf16 graph without bf16": {
		func(f *fixture) {
			f.manifest.Parameters[0].Compute = ""
			f.models[bf16File] = newModel(onnxpb.TensorProto_FLOAT, true)
		},
		"training_model.bf16.onnx: graph: precision is bf16, but no parameter, input or result of a Cast is",
	},
	"bf16 graph without the f32 one": {
		func(f *fixture) {
			f.manifest.Graphs = f.manifest.Graphs[1:]
			delete(f.models, trainFile)
		},
		"bundle.json: graphs[0]: precision is bf16, but no training graph has precision f32",
	},
	"bf16 without bf16 graph": {
		func(f *fixture) {
			f.manifest.Graphs = slices.Delete(f.manifest.Graphs, 1, 2)
			delete(f.models, bf16File)
		},
		`bundle.json: parameters[0]: "out.weight" has compute bf16, but no graph has precision bf16`,
	},
	"no gradient": {
		func(f *fixture) { f.models[trainFile].Graph.Output = f.models[trainFile].Graph.Output[:4] },
		`training_model.onnx: output "grad.out.bias": missing`,
	},
	"shape of a gradient": {
		func(f *fixture) {
			f.models[trainFile].Graph.Output[4] = value("grad.out.bias", onnxpb.TensorProto_FLOAT, 4)
		},
		`training_model.onnx: output "grad.out.bias": has shape [4], bundle.json says [3]`,
	},
	"gradient of a frozen parameter": {
		func(f *fixture) {
			g := f.models[trainFile].Graph
			g.Output = append(g.Output, value("grad.table", onnxpb.TensorProto_FLOAT, 2))
		},
		`training_model.onnx: output "grad.table": is not in outputs, nor the gradient of a parameter that is trained`,
	},
	"no metric in the training graph": {
		func(f *fixture) { g := f.models[trainFile].Graph; g.Output = slices.Delete(g.Output, 2, 3) },
		`training_model.onnx: output "metric.mel_loss": missing`,
	},
	"no loss weight in the eval graph": {
		func(f *fixture) { f.models[evalFile].Graph.Output = f.models[evalFile].Graph.Output[:1] },
		`eval_model.onnx: output "loss_weight": missing`,
	},
	"gradient in the eval graph": {
		func(f *fixture) {
			g := f.models[evalFile].Graph
			g.Output = append(g.Output, value("grad.out.bias", onnxpb.TensorProto_FLOAT, 3))
		},
		`eval_model.onnx: output "grad.out.bias": is not in outputs`,
	},
	"not ONNX": {
		func(f *fixture) { delete(f.models, evalFile); f.files[evalFile] = []byte("no") },
		"eval_model.onnx: model: not an ONNX file",
	},
	"no graph": {
		func(f *fixture) { f.models[evalFile].Graph = nil },
		"eval_model.onnx: model: has no graph",
	},
	"stage graph": {
		func(f *fixture) {
			f.models["logmel.onnx"] = &onnxpb.ModelProto{
				IrVersion: proto.Int64(10), OpsetImport: []*onnxpb.OperatorSetIdProto{opset("", 21)},
				Graph: &onnxpb.GraphProto{},
			}
		},
		"logmel.onnx: opset_import: opset 21, must be 20",
	},
	"weight missing": {
		func(f *fixture) { f.weights = f.weights[1:] },
		`params.safetensors: tensor "out.weight": missing`,
	},
	"weight too many": {
		func(f *fixture) {
			f.weights = append(f.weights, safetensors.Tensor{Name: "x", DType: safetensors.F32, Data: make([]byte, 4)})
		},
		`params.safetensors: tensor "x": is neither a parameter nor state in bundle.json`,
	},
	"weight of another type": {
		func(f *fixture) { f.weights[1].DType = safetensors.BF16; f.weights[1].Data = make([]byte, 6) },
		`params.safetensors: tensor "out.bias": is BF16, must be F32`,
	},
	"weight of another shape": {
		func(f *fixture) { f.weights[0].Shape = []int{3, 4} },
		`params.safetensors: tensor "out.weight": has shape [3,4], bundle.json says [4,3]`,
	},
	"broken weights": {
		func(f *fixture) { f.weights = nil; f.files[WeightsFile] = []byte("no") },
		"params.safetensors: header: not a valid safetensors file",
	},
	"another sum": {
		func(f *fixture) { f.manifest.Files[evalFile] = strings.Repeat("0", 64) },
		"eval_model.onnx: its SHA-256 is",
	},
	"listed and missing": {
		func(f *fixture) { f.manifest.Files["readme.txt"] = strings.Repeat("0", 64) },
		"readme.txt: missing, but listed in files of bundle.json",
	},
	"no training graph": {
		func(f *fixture) {
			f.manifest.Graphs = f.manifest.Graphs[2:]
			f.manifest.Parameters[0].Compute = ""
			delete(f.models, trainFile)
			delete(f.models, bf16File)
		},
		"bundle.json: graphs: none is of kind train",
	},
	"two graphs of one kind": {
		func(f *fixture) {
			f.manifest.Graphs[1].Precision = "f32"
			f.manifest.Parameters[0].Compute = ""
			delete(f.models, bf16File)
		},
		"bundle.json: graphs[1]: training_model.bf16.onnx is not listed in files\n" +
			"  bundle.json: graphs[1]: graphs[0] has the same file, or the same kind and precision",
	},
	"tokenizer not listed": {
		func(f *fixture) { f.manifest.Tokenizer = &manifest.Tokenizer{File: "tokenizer.json"} },
		"bundle.json: tokenizer: tokenizer.json is not listed in files",
	},
	"cost of no bucket": {
		func(f *fixture) { f.manifest.Cost[0].Bucket = 2 },
		"bundle.json: cost[0]: bucket 2 of 2",
	},
	"baseline of no metric": {
		func(f *fixture) { f.manifest.Baselines[0].Metric = "other" },
		"bundle.json: baselines[0]: metric.other is not in outputs",
	},
	"baseline of no input": {
		func(f *fixture) { f.manifest.Baselines[0].Target = "other" },
		`bundle.json: baselines[0]: "other" is not in inputs`,
	},
}
