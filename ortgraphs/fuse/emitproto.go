package fuse

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

func valueInfo(name string, t shapes.Type, shape []int) *onnxpb.ValueInfoProto {
	dims := &onnxpb.TensorShapeProto{}
	for _, d := range shape {
		dims.Dim = append(dims.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: dims}}}}
}

func integerAttribute(name string, x int) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(x)),
	}
}

func floatAttribute(name string, x float64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(float32(x)),
	}
}

func integers(name string, list []int) *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum()}
	for _, x := range list {
		a.Ints = append(a.Ints, int64(x))
	}
	return a
}

// encode returns numbers as a tensor's raw data has them.
func encode(data []float64, t shapes.Type) ([]byte, error) {
	raw := []byte{}
	le := binary.LittleEndian
	for _, x := range data {
		switch t {
		case onnxpb.TensorProto_FLOAT:
			raw = le.AppendUint32(raw, math.Float32bits(float32(x)))
		case onnxpb.TensorProto_DOUBLE:
			raw = le.AppendUint64(raw, math.Float64bits(x))
		case onnxpb.TensorProto_BFLOAT16:
			raw = le.AppendUint16(raw, shapes.BF16(float32(x)))
		case onnxpb.TensorProto_INT64:
			raw = le.AppendUint64(raw, uint64(int64(x)))
		case onnxpb.TensorProto_UINT64:
			raw = le.AppendUint64(raw, uint64(x))
		case onnxpb.TensorProto_INT32, onnxpb.TensorProto_UINT32:
			raw = le.AppendUint32(raw, uint32(int64(x)))
		case onnxpb.TensorProto_INT16, onnxpb.TensorProto_UINT16:
			raw = le.AppendUint16(raw, uint16(int64(x)))
		case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_BOOL:
			raw = append(raw, byte(int64(x)))
		default:
			return nil, fmt.Errorf("a constant of type %v cannot be written", t)
		}
	}
	return raw, nil
}
