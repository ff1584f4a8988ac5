package fused_test

import (
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// BenchmarkPlan plans the training graphs of a small model, and a deep graph of blocks that all read one tensor.
func BenchmarkPlan(b *testing.B) {
	nano := shapes.Sizes{"B": 16, "T_text": 124, "T_mel": 441, "T_ref_mel": 130}
	for _, c := range []struct {
		name  string
		file  []byte
		sizes shapes.Sizes
	}{
		{"nano", contents(b, "../builtin/myxtts-nano/training_model.onnx"), nano},
		{"nano-bf16", contents(b, "../builtin/myxtts-nano/training_model.bf16.onnx"), nano},
		{"blocks", blocks(b, 100), nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fused.NewPlan(c.file, c.sizes, fused.Form{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func contents(b *testing.B, path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// blocks is the forward and the backward pass of residual blocks, x + tanh((x - mean(x)) noise) W, with the same noise
// in each.
func blocks(b *testing.B, count int) []byte {
	const rows, width = 4096, 256
	g := &onnxpb.GraphProto{Name: proto.String("blocks"), Initializer: []*onnxpb.TensorProto{
		{
			Name: proto.String("axes"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
			Int64Data: []int64{1},
		},
		{Name: proto.String("one"), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{1}},
	}}
	add := func(op, out string, in ...string) string {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}})
		return out
	}
	centred := func(x, out string) string { return add("Sub", out, x, add("ReduceMean", out+"/mean", x, "axes")) }
	x := "x"
	for i := range count {
		name := fmt.Sprintf("block%d/", i)
		h := add("Tanh", name+"h", add("Mul", name+"noisy", centred(x, name+"centred"), "noise"))
		x = add("Add", name+"out", x, add("MatMul", name+"product", h, "weights"))
	}
	for i := count - 1; i >= 0; i-- {
		name := fmt.Sprintf("block%d/", i)
		slope := add("Sub", name+"slope", "one", add("Mul", name+"square", name+"h", name+"h"))
		dh := add("MatMul", name+"dh", x, add("Transpose", name+"transposed", "weights"))
		noisy := add("Mul", name+"dnoisy", add("Mul", name+"dtanh", dh, slope), "noise")
		x = add("Add", name+"dx", x, centred(noisy, name+"dcentred"))
	}
	g.Input = []*onnxpb.ValueInfoProto{matrix("x", rows, width), matrix("noise", rows, width), matrix("weights", width,
		width)}
	g.Output = []*onnxpb.ValueInfoProto{matrix(x, rows, width)}
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func matrix(name string, rows, columns int) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range []int{rows, columns} {
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}}}}
}
