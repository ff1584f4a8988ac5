// Package rows spreads the rows of a batch over goroutines:
//
//	rows.Each(b.Rows(), func(row int) { augment(row, b.Rand(row)) })
//
// A batch's bits do not depend on it as long as the work on a row touches that row only.
package rows

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls work once for each row in [0,n), from at most runtime.GOMAXPROCS(0) goroutines, in no particular order,
// and returns when all calls have.
func Each(n int, work func(row int)) {
	var next atomic.Int64
	loop := func() {
		for row := int(next.Add(1)) - 1; row < n; row = int(next.Add(1)) - 1 {
			work(row)
		}
	}
	var helpers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		helpers.Go(loop)
	}
	loop()
	helpers.Wait()
}
