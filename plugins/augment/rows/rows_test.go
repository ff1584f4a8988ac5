package rows

import (
	"runtime"
	"slices"
	"testing"
)

func TestEach(t *testing.T) {
	for _, workers := range []int{1, 4} {
		for _, n := range []int{0, 1, 3, 100} {
			old := runtime.GOMAXPROCS(workers)
			calls := make([]int, n)
			Each(n, func(row int) { calls[row]++ })
			runtime.GOMAXPROCS(old)
			if want := slices.Repeat([]int{1}, n); !slices.Equal(calls, want) {
				t.Errorf("%d workers, %d rows: calls %v", workers, n, calls)
			}
		}
	}
}
