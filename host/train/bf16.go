package train

import (
	"slices"

	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// narrow converts f32 to bf16, rounding to nearest, ties to even. A NaN stays a NaN.
func narrow(to []byte, from []float32) {
	bits := ort.View[uint16](to)
	for i, x := range from {
		bits[i] = kernels.BF16(x)
	}
}

// widen converts bf16 numbers to f32, which is exact.
func widen(from []byte) []float32 {
	narrow := ort.View[uint16](from)
	wide := make([]float32, len(narrow))
	for i, x := range narrow {
		wide[i] = kernels.F32(x)
	}
	return wide
}

// numbers returns a copy of the values in bytes of a type, as f32.
func numbers(data []byte, t manifest.DType) []float32 {
	if t == manifest.BF16 {
		return widen(data)
	}
	return slices.Clone(ort.View[float32](data))
}

// setNumbers writes values as bytes of a type.
func setNumbers(to []byte, t manifest.DType, x []float32) {
	if t == manifest.BF16 {
		narrow(to, x)
	} else {
		copy(ort.View[float32](to), x)
	}
}

// numbers returns a range of a vector, from Go's side.
func (v *vector) numbers(r ortgraphs.Range) []float32 {
	s := v.span(r)
	return numbers(v.host[s.Offset:s.Offset+s.Bytes()], s.DType)
}

// set writes a vector of one type on Go's side, from the first element on.
func (v *vector) set(x []float32) {
	setNumbers(v.host, v.span(ortgraphs.Range{End: len(x)}).DType, x)
}
