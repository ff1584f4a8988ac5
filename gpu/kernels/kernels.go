// Package kernels holds the program's own kernels of a GPU: sources in CUDA C++, and the PTX that scripts/kernels.sh
// makes of them, which a GPU's driver compiles. The fake driver of the tests compiles the same sources for the CPU.
package kernels

import _ "embed"

// AdamW is the update of AdamW in one pass over the vectors, in PTX.
//
//go:embed adamw.ptx
var AdamW string
