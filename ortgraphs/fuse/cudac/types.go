package cudac

import (
	"fmt"
	"math"
	"strconv"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// held is the C type of a value of an element type in a register: bf16 is held as f32, rounded.
func held(t shapes.Type) (string, bool) {
	switch t {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_BFLOAT16:
		return "float", true
	case onnxpb.TensorProto_DOUBLE:
		return "double", true
	case onnxpb.TensorProto_INT32:
		return "int", true
	case onnxpb.TensorProto_INT64:
		return "long long", true
	case onnxpb.TensorProto_BOOL:
		return "bool", true
	}
	return "", false
}

// stored is the C type of an element in memory.
func stored(t shapes.Type) string {
	if isShort(t) {
		return "bf16"
	}
	name, _ := held(t)
	return name
}

// inMemory converts a value of a register to the type in memory.
func inMemory(stored, code string) string {
	if stored == "bf16" {
		return "exact(" + code + ")"
	}
	return code
}

func isShort(t shapes.Type) bool { return t == onnxpb.TensorProto_BFLOAT16 }

func isFloat(t shapes.Type) bool { return t == onnxpb.TensorProto_FLOAT || isShort(t) }

func isDouble(t shapes.Type) bool { return t == onnxpb.TensorProto_DOUBLE }

// literal is a number of an element type in C.
func literal(x float64, t shapes.Type) string {
	switch {
	case t == onnxpb.TensorProto_BOOL:
		return strconv.FormatBool(x != 0)
	case t == onnxpb.TensorProto_INT64:
		return fmt.Sprintf("(%dLL)", int64(x))
	case isDouble(t):
		return literalDouble(x)
	case !isFloat(t):
		return fmt.Sprintf("(%d)", int64(x))
	case math.IsNaN(x):
		return "NAN"
	case math.IsInf(x, 0) || math.Abs(x) > math.MaxFloat32:
		if x < 0 {
			return "(-INFINITY)"
		}
		return "INFINITY"
	}
	f := float32(x)
	if isShort(t) {
		f = roundShort(f)
	}
	text := strconv.FormatFloat(float64(f), 'e', 9, 32) + "f"
	if f < 0 {
		return "(" + text + ")"
	}
	return text
}

// literalDouble is a number in f64 in C: the macros are of f32, which a template would take for another type.
func literalDouble(x float64) string {
	switch {
	case math.IsNaN(x):
		return "((double)NAN)"
	case math.IsInf(x, 1):
		return "((double)INFINITY)"
	case math.IsInf(x, -1):
		return "(-(double)INFINITY)"
	}
	text := strconv.FormatFloat(x, 'e', 17, 64)
	if x < 0 {
		return "(" + text + ")"
	}
	return text
}

// roundShort rounds to bf16, ties to even.
func roundShort(f float32) float32 {
	bits := math.Float32bits(f)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}
