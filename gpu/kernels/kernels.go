// Package kernels contains the CUDA kernels of the program: sources in CUDA C++, and the PTX that scripts/kernels.sh
// compiles them to, which the GPU's driver translates. The fake driver of the tests compiles the same sources for the
// CPU.
package kernels

import _ "embed"

// AdamW is the update of AdamW in one pass over the vectors, in PTX.
//
//go:embed adamw.ptx
var AdamW []byte

// Squares is the sum of the squares of a vector, in PTX.
//
//go:embed squares.ptx
var Squares []byte

// Weigh multiplies gradients by the loss weight of their batch, in PTX.
//
//go:embed weigh.ptx
var Weigh []byte

// Peers sums over GPUs that write into each other's memory, in PTX.
//
//go:embed peers.ptx
var Peers []byte
