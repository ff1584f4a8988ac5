package shapes

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Type is an ONNX element type, numbered as in TensorProto.DataType.
type Type = onnxpb.TensorProto_DataType

// Value is a tensor of the graph.
type Value struct {
	Name string
	Type Type
	// Shape is nil if it is unknown. The shape of a scalar is empty and not nil.
	Shape []int64
	// Data is the content of the tensor, if it follows from constants and shapes alone and has at most maxData numbers;
	// otherwise nil. Integers are exact up to 2^53.
	Data []float64
	// Constant means that it is an initializer, the output of Constant, or computed only from such values.
	Constant bool
	// From is the node that computes it, or nil for inputs and initializers.
	From *Node
	// Proto has the content in the file, for an initializer and the tensor of a Constant; otherwise nil.
	Proto *onnxpb.TensorProto
}

// maxData limits the numbers that are computed together with the shapes.
const maxData = 4096

// Known reports whether the shape is known.
func (v *Value) Known() bool { return v != nil && v.Shape != nil }

// Elements returns the number of elements, or 0 if the shape is unknown.
func (v *Value) Elements() int64 {
	if !v.Known() {
		return 0
	}
	return product(v.Shape)
}

// Bytes returns the size of the tensor, or 0 if the shape is unknown.
func (v *Value) Bytes() int64 {
	if !v.Known() {
		return 0
	}
	return product(v.Shape) * ElementSize(v.Type)
}

// Node is a node of the graph, or of the body of a called function.
type Node struct {
	Proto *onnxpb.NodeProto
	// Place names the node in messages: its name, or else "the node of" its first output, after the names of the
	// enclosing functions.
	Place   string
	In, Out []*Value // nil if an optional one is omitted
	// Captured are the values from outside that the graphs in its attributes read, in the order of their names.
	Captured []Captured
	// Step is one step of a Scan whose shapes are known, and Steps the number of steps.
	Step  *Result
	Steps int64
}

// Captured is a value from outside of a graph, and its name there: in a function, the value may have another one.
type Captured struct {
	Name  string
	Value *Value
}

// Reads returns the values that the node reads: its inputs, and what it captures. Those that are omitted are nil.
func (n *Node) Reads() []*Value {
	list := n.In[:len(n.In):len(n.In)]
	for _, c := range n.Captured {
		list = append(list, c.Value)
	}
	return list
}

// Rounded reports whether Data has integers that are too large for it.
func (v *Value) Rounded() bool {
	return isInteger(v.Type) && slices.ContainsFunc(v.Data, func(x float64) bool { return math.Abs(x) >= 1<<53 })
}

// product returns the product of sizes that are not negative, at most the largest integer.
func product(shape []int64) int64 {
	n := int64(1)
	for i, d := range shape {
		if d == 0 || slices.Contains(shape[i:], 0) {
			return 0
		}
		if n > math.MaxInt64/d {
			return math.MaxInt64
		}
		n *= d
	}
	return n
}

// ElementSize returns the size of one element in bytes, or 0 for types that constants do not have.
func ElementSize(t Type) int64 {
	switch t {
	case onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_INT64, onnxpb.TensorProto_UINT64:
		return 8
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_INT32, onnxpb.TensorProto_UINT32:
		return 4
	case onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_INT16, onnxpb.TensorProto_UINT16:
		return 2
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_BOOL:
		return 1
	}
	return 0
}

func isInteger(t Type) bool {
	switch t {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16:
		return false
	}
	return true
}

// constant reads an initializer.
func constant(t *onnxpb.TensorProto) *Value {
	v := &Value{Name: t.GetName(), Type: Type(t.GetDataType()), Shape: slices.Clone(t.Dims), Constant: true, Proto: t}
	if v.Shape == nil {
		v.Shape = []int64{}
	}
	for _, d := range v.Shape {
		if d < 0 || d > math.MaxInt32 {
			v.Shape = nil // no tensor is like that; the check of the file reports it
			return v
		}
	}
	if n := product(v.Shape); n <= maxData {
		v.Data = numbers(t, int(n))
	}
	return v
}

// Number returns the number of a tensor that has one, or false if it is not known exactly.
func Number(t *onnxpb.TensorProto) (float64, bool) {
	if t == nil {
		return 0, false
	}
	v := constant(t)
	if len(v.Data) != 1 || v.Rounded() {
		return 0, false
	}
	return v.Data[0], true
}

// numbers returns the n numbers of a tensor, or nil if the file does not contain them or they are of a type that no
// shape needs.
func numbers(t *onnxpb.TensorProto, n int) []float64 {
	kind := Type(t.GetDataType())
	if t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL || kind == onnxpb.TensorProto_FLOAT16 {
		return nil
	}
	out := make([]float64, n)
	if raw := t.RawData; len(raw) > 0 || n == 0 {
		width := int(ElementSize(kind))
		if len(raw) != n*width {
			return nil
		}
		for i := range out {
			out[i] = number(raw[i*width:], kind)
		}
		return out
	}
	set := func(count int, at func(i int) float64) []float64 {
		if count != n {
			return nil
		}
		for i := range out {
			out[i] = at(i)
		}
		return out
	}
	switch kind {
	case onnxpb.TensorProto_FLOAT:
		return set(len(t.FloatData), func(i int) float64 { return float64(t.FloatData[i]) })
	case onnxpb.TensorProto_DOUBLE:
		return set(len(t.DoubleData), func(i int) float64 { return t.DoubleData[i] })
	case onnxpb.TensorProto_INT64:
		return set(len(t.Int64Data), func(i int) float64 { return float64(t.Int64Data[i]) })
	case onnxpb.TensorProto_INT32, onnxpb.TensorProto_BOOL, onnxpb.TensorProto_INT16, onnxpb.TensorProto_INT8,
		onnxpb.TensorProto_UINT16, onnxpb.TensorProto_UINT8:
		return set(len(t.Int32Data), func(i int) float64 { return float64(t.Int32Data[i]) })
	}
	return nil
}

func number(raw []byte, t Type) float64 {
	le := binary.LittleEndian
	switch t {
	case onnxpb.TensorProto_FLOAT:
		return float64(math.Float32frombits(le.Uint32(raw)))
	case onnxpb.TensorProto_DOUBLE:
		return math.Float64frombits(le.Uint64(raw))
	case onnxpb.TensorProto_BFLOAT16:
		return float64(math.Float32frombits(uint32(le.Uint16(raw)) << 16))
	case onnxpb.TensorProto_INT64:
		return float64(int64(le.Uint64(raw)))
	case onnxpb.TensorProto_UINT64:
		return float64(le.Uint64(raw))
	case onnxpb.TensorProto_INT32:
		return float64(int32(le.Uint32(raw)))
	case onnxpb.TensorProto_UINT32:
		return float64(le.Uint32(raw))
	case onnxpb.TensorProto_INT16:
		return float64(int16(le.Uint16(raw)))
	case onnxpb.TensorProto_UINT16:
		return float64(le.Uint16(raw))
	case onnxpb.TensorProto_INT8:
		return float64(int8(raw[0]))
	}
	return float64(raw[0]) // bool, u8
}
