package fused

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
)

// TestGroupSums: one launch completes the column sums of regions until their parts take too much memory or it has too
// many pointers.
func TestGroupSums(t *testing.T) {
	for name, c := range map[string]struct {
		sums, length int // of each of five regions
		want         map[int][]int
	}{
		"few":      {1, 100, map[int][]int{4: {0, 1, 2, 3, 4}}},
		"memory":   {1, maxPartialBytes / 4 / 2, map[int][]int{1: {0, 1}, 3: {2, 3}, 4: {4}}},
		"pointers": {maxSumsPointers/2 - 1, 100, map[int][]int{1: {0, 1}, 3: {2, 3}, 4: {4}}},
		"one more": {maxSumsPointers / 2, 100, map[int][]int{0: {0}, 1: {1}, 2: {2}, 3: {3}, 4: {4}}},
	} {
		p := &Plan{graph: &fuse.Graph{}}
		var run []int
		for i := range 5 {
			p.kernels = append(p.kernels, &cudac.Kernel{Sums: make([]cudac.Sum, c.sums), PartialsLength: c.length})
			run = append(run, i)
		}
		l := &linking{plan: p, completed: map[int][]int{}}
		if l.groupSums(run); !reflect.DeepEqual(l.completed, c.want) {
			t.Errorf("%s: %v, want %v", name, l.completed, c.want)
		}
	}
}
