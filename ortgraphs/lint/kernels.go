package lint

import (
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Sets of element types for which the CUDA provider has kernels.
const (
	floats   = "f64 f32 f16"
	floatsB  = floats + " bf16"
	numbers  = floatsB + " i8 i16 i32 i64 u8 u16 u32 u64"
	ordered  = floats + " i32 i64 u32 u64"
	anything = numbers + " bool"
)

// kernels lists, for each operator, the types of its data for which ONNX Runtime 1.29's CUDA provider has a kernel at
// opset 20. An operator that is not listed runs on the CPU. Source: docs/OperatorKernels.md of onnxruntime, a table
// generated from the registered kernels.
var kernels = map[string]string{
	"Abs": numbers, "Add": numbers, "Sub": numbers, "Mul": numbers, "Div": numbers,
	"Mod": floatsB + " i32 i64 u32 u64", "Pow": floatsB + " i32 i64", "Neg": floatsB + " i8 i16 i32 i64",
	"Sign": numbers, "Min": floatsB + " i32 i64 u32 u64", "Max": floatsB + " i32 i64 u32 u64", "Sum": floatsB,
	"And": "bool", "Or": "bool", "Xor": "bool", "Not": "bool", "Equal": ordered + " bool", "Less": ordered,
	"LessOrEqual": ordered, "Greater": ordered, "GreaterOrEqual": ordered, "Where": floatsB + " i32 i64 u8",
	"Clip": floats + " i8 i64 u8 u64", "Sqrt": floatsB, "Exp": floatsB, "Log": floats, "Erf": floatsB, "Tanh": floatsB,
	"Sigmoid": floatsB, "Relu": floatsB, "LeakyRelu": floats, "Elu": floats, "Selu": floats, "Gelu": floatsB,
	"HardSigmoid": floats, "HardSwish": floats, "PRelu": floats, "Softplus": floats, "Softsign": floats,
	"ThresholdedRelu": floats, "Shrink": numbers, "Sin": floats, "Cos": floats, "Floor": floats, "Ceil": floats,
	"Round": floats, "Reciprocal": floats, "IsNaN": floatsB, "IsInf": floatsB, "Softmax": floatsB, "LogSoftmax": floats,
	"CumSum": floats + " i32 i64 u32 u64", "Trilu": anything, "Dropout": floatsB, "LayerNormalization": floatsB,
	"SimplifiedLayerNormalization": floatsB, "InstanceNormalization": floats, "BatchNormalization": floats,
	"LRN": floats, "MatMul": floatsB, "Gemm": floatsB, "Einsum": floats, "Conv": floats, "ConvTranspose": floats,
	"AveragePool": floats, "MaxPool": floats + " i8 u8", "GlobalAveragePool": floats, "GlobalMaxPool": floats,
	"Cast": anything, "Identity": anything, "Reshape": anything, "Flatten": anything, "Squeeze": anything,
	"Unsqueeze": anything, "Transpose": anything, "Expand": anything, "Tile": floatsB + " i32 i64", "Concat": anything,
	"Split": anything, "Slice": anything, "Pad": floats + " bool", "Gather": anything, "GatherElements": anything,
	"GatherND": floatsB + " bool i64", "ScatterElements": anything, "ScatterND": anything, "Compress": anything,
	"NonZero": "f32 f16 bool i32 i64 u8", "OneHot": "i32 i64", "ReverseSequence": anything, "TopK": floats + " i32 i64",
	"Shape": anything, "Size": anything, "ConstantOfShape": "i64", "Range": "f64 f32 i16 i32 i64",
	"EyeLike": "f64 f32 i32 i64 u64", "Constant": anything, "ReduceSum": floatsB + " i32 i64",
	"ReduceMean": floats + " i32", "ReduceMax": floats + " i32 i64", "ReduceMin": floats + " i8 u8 i32 i64",
	"ReduceProd": floats + " i32", "ReduceL1": floats + " i32", "ReduceL2": floats + " i32", "ReduceSumSquare": floats,
	"ReduceLogSum": floats, "ReduceLogSumExp": floats, "ArgMax": floats, "ArgMin": floats, "DepthToSpace": floats,
	"SpaceToDepth": floats, "Resize": floats + " i32 u8", "GridSample": "f32", "If": anything, "Loop": anything,
	"Scan": anything, "LSTM": floats, "GRU": floats, "RNN": floats, "RandomNormal": anything,
	"RandomNormalLike": anything, "RandomUniform": anything, "RandomUniformLike": anything, "MemcpyFromHost": anything,
	"MemcpyToHost": anything,
}

// data is the input whose type selects the kernel, if it is not the first.
var data = map[string]int{"Where": 1}

// onHost are the inputs that a CUDA kernel reads from host memory: shapes, axes, bounds.
var onHost = map[string][]int{
	"Reshape": {1}, "Expand": {1}, "Tile": {1}, "Slice": {1, 2, 3, 4}, "Split": {1}, "Squeeze": {1}, "Unsqueeze": {1},
	"Pad": {1, 2, 3}, "ConstantOfShape": {0}, "Range": {0, 1, 2}, "TopK": {1}, "OneHot": {1}, "CumSum": {1},
	"Clip": {1, 2}, "Trilu": {1}, "Dropout": {1, 2}, "Resize": {1, 2, 3}, "If": {0}, "Loop": {0, 1}, "ReduceSum": {1},
	"ReduceMean": {1}, "ReduceMax": {1}, "ReduceMin": {1}, "ReduceProd": {1}, "ReduceL1": {1}, "ReduceL2": {1},
	"ReduceSumSquare": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1},
}

var typeNames = map[shapes.Type]string{
	onnxpb.TensorProto_FLOAT: "f32", onnxpb.TensorProto_DOUBLE: "f64", onnxpb.TensorProto_FLOAT16: "f16",
	onnxpb.TensorProto_BFLOAT16: "bf16", onnxpb.TensorProto_INT8: "i8", onnxpb.TensorProto_INT16: "i16",
	onnxpb.TensorProto_INT32: "i32", onnxpb.TensorProto_INT64: "i64", onnxpb.TensorProto_UINT8: "u8",
	onnxpb.TensorProto_UINT16: "u16", onnxpb.TensorProto_UINT32: "u32", onnxpb.TensorProto_UINT64: "u64",
	onnxpb.TensorProto_BOOL: "bool",
}

// kernel reports whether the CUDA provider has a kernel for the node, and for which types.
func kernel(n *shapes.Node) (has bool, types string) {
	types, ok := kernels[n.Op()]
	if !ok {
		// ONNX Runtime's optimizer writes its own operators only for the provider that will run them. The kernels of a
		// fused graph (package fused) run on the GPU.
		return strings.HasPrefix(n.Op(), "com.microsoft.") || n.Proto.GetDomain() == shapes.KernelDomain, ""
	}
	v := n.Input(data[n.Op()])
	if v == nil || typeNames[v.Type] == "" {
		return true, types
	}
	for _, t := range strings.Fields(types) {
		if t == typeNames[v.Type] {
			return true, types
		}
	}
	return false, types
}
