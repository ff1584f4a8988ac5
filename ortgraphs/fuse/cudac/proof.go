package cudac

import _ "embed"

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

// NoiseFunction and MeasureFunction are for f32, or for bf16 if short.
func NoiseFunction(short bool) string   { return "noise_" + ofType(short) }
func MeasureFunction(short bool) string { return "measure_" + ofType(short) }

func ofType(short bool) string {
	if short {
		return "short"
	}
	return "float"
}
