package stage

import (
	"runtime"
	"slices"
	"testing"
)

func TestEachRow(t *testing.T) {
	for _, workers := range []int{1, 4} {
		for _, n := range []int{0, 1, 3, 100} {
			old := runtime.GOMAXPROCS(workers)
			calls := make([]int, n)
			EachRow(n, func(row int) { calls[row]++ })
			runtime.GOMAXPROCS(old)
			if want := slices.Repeat([]int{1}, n); !slices.Equal(calls, want) {
				t.Errorf("%d workers, %d rows: calls %v", workers, n, calls)
			}
		}
	}
}
