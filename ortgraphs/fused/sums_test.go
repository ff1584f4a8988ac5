package fused_test

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
)

// TestProofOfSums: the proof accepts kernels whose last blocks complete their sums, and finds those that forget a block
// or a group of them, or leave a counter that is not zero.
func TestProofOfSums(t *testing.T) {
	const kernels = 2
	const last = "threadIdx.x == 0 && count_arrival(arrived, count - 1) == count - 1"
	for _, c := range []struct {
		what, wrong, by string
		want            int // kernels that have it: the second alone has groups
	}{
		{"none", "", "", 0},
		{"one does not arrive", last, "blockIdx.x != 1 && " + last, kernels},
		{"a counter that is not zero", "count_arrival(arrived, count - 1)", "count_arrival(arrived, count)", kernels},
		{"does not wait for the last", "== count - 1)", "== count - 2)", kernels},
		{"a smaller last group", "BLOCKS ? GROUP : BLOCKS - first", "BLOCKS ? GROUP : GROUP", 1},
		{"does not wait for a group", "is_last(arrived + GROUPS, GROUPS)", "is_last(arrived + GROUPS, GROUPS - 1)", 1},
		{"a group is left out", "(parts, GROUPS", "(parts, GROUPS - 1", 1},
		{"a group's sum is not written", "own[i] = x", "if (group != 3) own[i] = x", 1},
		{"rows are left out", "row += PARTS", "row += 2 * PARTS", 1},
		{"all groups count as one", "is_last(arrived + group", "is_last(arrived", 1},
		{"a part is left out", "i < PARTS && i < rows", "i + 1 < PARTS && i < rows", 1},
		{"a neighbour's sum", "int c = blockIdx.y * 128 + i % 128", "int c = i % 128 ^ 1", 1},
	} {
		compiler := fusedtest.NewCompiler(t)
		if c.wrong != "" {
			compiler.Change, compiler.Faults = func(program string) string {
				if !strings.Contains(program, "complete<") {
					return program
				}
				return strings.Replace(program, c.wrong, c.by, 1)
			}, kernels
		}
		proved, faults := prooftest.Sums{Compiler: compiler}.Check(t)
		if proved < kernels || len(faults) != c.want {
			t.Errorf("%s: %d of %d kernels are wrong, want %d: %v", c.what, len(faults), proved, c.want, faults)
		}
	}
}
