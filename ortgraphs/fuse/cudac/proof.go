package cudac

import (
	_ "embed"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Proof is the program that a proof launches beside the kernels of regions. It is compiled after [Prelude].
//
//go:embed proof.cuh
var Proof string

// Functions of the program Proof, each with blocks of ProofThreads threads. Fill fills an output. Noise and Measure are
// by type: they move the numbers of a tensor, and compare those that a kernel has written. Same compares bytes.
const (
	FillFunction = "fill"
	SameFunction = "same"
	ProofThreads = 256
	// MeasureFields is the number of values that each block of Measure or Same returns: see proof.cuh.
	MeasureFields = 10
)

// ProofTypes are the types of numbers that move in a proof: all others are compared by their bytes.
var ProofTypes = []shapes.Type{
	onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_DOUBLE,
}

// NoiseFunction and MeasureFunction are by one of ProofTypes.
func NoiseFunction(t shapes.Type) string   { return "noise_" + ofType(t) }
func MeasureFunction(t shapes.Type) string { return "measure_" + ofType(t) }

func ofType(t shapes.Type) string {
	if isShort(t) {
		return "short"
	}
	register, _ := held(t)
	return register
}
