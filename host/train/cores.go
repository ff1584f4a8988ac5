package train

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// allCores returns a group of goroutines, of which as many run at a time as there are cores.
func allCores() *errgroup.Group {
	all := new(errgroup.Group)
	all.SetLimit(runtime.GOMAXPROCS(0))
	return all
}
