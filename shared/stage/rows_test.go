package stage

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
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

// TestEachRowPanics: a panic in any of the goroutines is one of the caller, with the place where it happened.
func TestEachRowPanics(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var all sync.WaitGroup
	all.Add(3)
	var rows []int
	err := func() (err error) {
		defer func() { err = recovered(recover()) }()
		EachRow(3, func(row int) {
			all.Done()
			all.Wait() // so each row has a goroutine of its own
			_ = rows[row]
		})
		return nil
	}()
	_, _, line, _ := runtime.Caller(0)
	want := "panic: runtime error: index out of range [%d] with length 0 (rows_test.go:" + fmt.Sprint(line-4) + ")"
	if got := err.Error(); got != fmt.Sprintf(want, 0) && got != fmt.Sprintf(want, 1) && got != fmt.Sprintf(want, 2) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
