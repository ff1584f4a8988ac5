package fused_test

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
)

// TestProofOfDepthwise: the proof accepts the kernels of depthwise convolutions, which add in another order, and finds
// those that are wrong by little.
func TestProofOfDepthwise(t *testing.T) {
	const kernels = 3
	for _, short := range []bool{false, true} {
		for _, c := range []struct {
			wrong, by string
			want      int // kernels that have it
		}{
			{"", "", 0},
			{"sum[i][v] += window[(i + k) % RUN][v]", "sum[i][v] += window[i][v]", 2}, // another position
			{"k < TAPS; k++) {\n\t\ttake", "k + 1 < TAPS; k++) {\n\t\ttake", 2},       // leaves out a tap
			{"sum[i][v] = 0", "sum[i][v] = i == 0 ? 0.03f : 0", kernels},              // begins with something
			{"(unsigned)position < SIZE", "(unsigned)position < SIZE - 1", kernels},   // leaves out the last
			{"* one[v]", "* one[0]", 1},             // a neighbour's gradient
			{"int j = 1; j <", "int j = 2; j <", 1}, // leaves out a warp
		} {
			compiler := fusedtest.NewCompiler(t)
			if c.wrong != "" {
				compiler.Change, compiler.Faults = func(program string) string {
					if !strings.Contains(program, "add_taps<5") && !strings.Contains(program, "add_products<1") {
						return program
					}
					return strings.Replace(program, c.wrong, c.by, 1)
				}, kernels
			}
			proved, faults := prooftest.Depthwise{Compiler: compiler, Short: short}.Check(t)
			if proved != kernels || len(faults) != c.want {
				t.Errorf("bf16 %t, %s: %d of %d kernels are wrong, want %d of %d: %v", short, c.by, len(faults), proved,
					c.want, kernels, faults)
			}
		}
	}
}
