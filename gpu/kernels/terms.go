package kernels

import "math"

// Weighed is what weigh.cu computes of a gradient in f32: its product with the loss weight of its batch, which is never
// -0, and 0 without a weight.
func Weighed(gradient, weight float32) float32 {
	if weight == 0 {
		return 0
	}
	return 0 + float32(gradient*weight)
}

// BF16 is the nearest bf16, and the even one of two that are as near. A NaN stays a NaN.
func BF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | 1<<6 // rounding could turn the NaN into an infinity
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// F32 is the value of a bf16, which is exact.
func F32(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }
