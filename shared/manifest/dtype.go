package manifest

// DType is the element type of a tensor, as written in the manifests and in the stage protocol.
type DType string

// The element types of tensors. Integers that the host produces are I32.
const (
	F32  DType = "f32"
	F64  DType = "f64"
	F16  DType = "f16"
	BF16 DType = "bf16"
	I32  DType = "i32"
	I64  DType = "i64"
	U8   DType = "u8"
	Bool DType = "bool"
)

// Size returns the size of one element in bytes, or 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case F64, I64:
		return 8
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	case U8, Bool:
		return 1
	}
	return 0
}
