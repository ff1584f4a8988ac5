package safetensors

import "github.com/xtts-host/xtts-host/shared/manifest"

// types are the element types that graphs have, too. The others do not occur in tensors of graphs.
var types = map[manifest.DType]DType{
	manifest.F32: F32, manifest.F64: F64, manifest.F16: F16, manifest.BF16: BF16,
	manifest.I32: I32, manifest.I64: I64, manifest.U8: U8, manifest.Bool: Bool,
}

// graphTypes is the inverse.
var graphTypes = func() map[DType]manifest.DType {
	inverse := map[DType]manifest.DType{}
	for of, t := range types {
		inverse[t] = of
	}
	return inverse
}()

// TypeOf returns the element type of a file for that of a graph.
func TypeOf(t manifest.DType) DType { return types[t] }

// GraphType returns the element type of a graph for that of a file, or false if graphs have none.
func GraphType(t DType) (manifest.DType, bool) {
	of, ok := graphTypes[t]
	return of, ok
}
