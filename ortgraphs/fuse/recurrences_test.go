package fuse_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// recurrences adds the recurrences of recurrent.py, and their gradients.
func (k *kernels) recurrences(t *testing.T, rows, steps int) {
	t.Helper()
	model := load(t, "../testdata/layers/recurrent.onnx")
	sizes := shapes.Sizes{"B": rows, "T_mel": steps, "T_wav": 256 * (steps - 1)}
	r, g, regions := partition(t, model, sizes)
	m, _ := results(t, model, r, g, regions, batch(r, sizes))
	k.add(t, slices.DeleteFunc(slices.Clone(regions), func(r *fuse.Region) bool {
		_, ok := r.Work.(*fuse.Recurrences)
		return !ok
	}), m)
	for reason := range k.left {
		t.Error(reason)
	}
	if len(k.kernels) != 8 { // two directions are one kernel
		t.Errorf("%d kernels, want 8", len(k.kernels))
	}
}

// TestRecurrences: LSTMs, GRUs and plain recurrences, with and without biases and projections, forwards and backwards,
// and their gradients are kernels that compute what ONNX Runtime computes step by step, however many blocks meet.
func TestRecurrences(t *testing.T) {
	for _, c := range []struct{ blocks, rows, steps int }{
		{1, 1, 5}, {1, 3, 5}, {1, 6, 5}, {3, 1, 5}, {3, 3, 5}, {3, 6, 5}, {64, 1, 2}, {64, 2, 2},
	} {
		t.Run(fmt.Sprintf("%d blocks, %d rows", c.blocks, c.rows), func(t *testing.T) {
			k := &kernels{target: cudac.Target{Together: c.blocks}}
			k.recurrences(t, c.rows, c.steps)
			k.check(t, &emulation{}, 1e-5)
		})
	}
}
