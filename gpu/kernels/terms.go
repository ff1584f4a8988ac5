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

// Rounded is the nearest bf16, and the even one of two that are as near. The payload of a NaN says nothing.
func Rounded(x float32) float32 {
	if x != x {
		return x
	}
	bits := math.Float32bits(x)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}
