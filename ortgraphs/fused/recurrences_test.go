package fused_test

import (
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
)

// TestProofOfRecurrences: the proof accepts kernels of recurrences, whose products add their terms in another order,
// also where the plain nodes multiply in TF32. It finds those that are wrong by little.
func TestProofOfRecurrences(t *testing.T) {
	file, err := os.ReadFile("../testdata/layers/recurrent.onnx")
	if err != nil {
		t.Fatal(err)
	}
	const rows, frames, kernels = 2, 5, 8
	check := func(wrong, by string, tf32 bool) (faults []error) {
		t.Helper()
		compiler := fusedtest.NewCompiler(t)
		if wrong != "" {
			compiler.Change, compiler.Faults = func(program string) string {
				if !strings.Contains(program, " recurrence_") {
					return program
				}
				return strings.Replace(program, wrong, by, 1)
			}, kernels
		}
		proved, faults := prooftest.Recurrences{
			Of: "recurrence of", Compiler: compiler, TF32: tf32,
			Form: fused.Form{Multiprocessors: cudac.Multiprocessors{Count: 2}},
		}.Check(t, file, rows, frames)
		if proved != kernels {
			t.Errorf("%d kernels are proved, want %d", proved, kernels)
		}
		return faults
	}
	for _, tf32 := range []bool{false, true} {
		if faults := check("", "", tf32); len(faults) > 0 {
			t.Errorf("TF32 %t: %v", tf32, faults)
		}
	}
	for _, c := range []struct {
		wrong, by string
		want      int // kernels that have it
	}{
		{"step % 2 *", "(step / 2) % 2 *", kernels},                                 // reads an older step
		{"tanhf", "0.9999f * tanhf", kernels - 2},                                   // not in those of ReLU
		{"const int row = first + i /", "const int row = first + 1 - i /", kernels}, // exchanges rows
	} {
		if faults := check(c.wrong, c.by, false); len(faults) != c.want {
			t.Errorf("%s: %d kernels are wrong, want %d: %v", c.by, len(faults), c.want, faults)
		}
	}
}

// TestProofOfLiftedScans: the proof accepts kernels that compute all steps of a recurrence at once, and finds those
// that are wrong.
func TestProofOfLiftedScans(t *testing.T) {
	file, err := os.ReadFile("../testdata/layers/scanned.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wrong, by string
		want      int // kernels that have it
	}{
		{"", "", 0},
		{"{times_of(b.slope, a.slope)", "{times_of(b.slope, b.slope)", 3},
		{"i < part; i++) sum", "i + 1 < part; i++) sum", 6}, // also of CumSum
		{"a.sum * below + b.sum", "a.sum + b.sum", 1},       // of a new largest number
		{"sum = {1, ", "sum = {1, 1e-2f + ", 3},             // of the first step
	} {
		compiler := fusedtest.NewCompiler(t)
		if c.wrong != "" {
			compiler.Change, compiler.Faults = func(program string) string {
				return strings.ReplaceAll(program, c.wrong, c.by)
			}, 6 // of all that combine elements
		}
		const rows, frames = 2, 70
		proved, faults := prooftest.Recurrences{Compiler: compiler}.Check(t, file, rows, frames)
		if proved != 19 || len(faults) != c.want {
			t.Errorf("%s: %d kernels are proved; %d are wrong, want %d: %v", c.by, proved, len(faults), c.want, faults)
		}
	}
}
