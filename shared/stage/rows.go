package stage

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// EachRow calls work once for each row in [0,n), from at most runtime.GOMAXPROCS(0) goroutines, in no particular order.
// It returns when all calls have returned. The result does not depend on the order if the work on a row accesses only
// that row:
//
//	stage.EachRow(b.Rows(), func(row int) { augment(row, b.Rand(row)) })
func EachRow(n int, work func(row int)) {
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
