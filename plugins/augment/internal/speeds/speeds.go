// Package speeds has the resampling filters of stages that change the speed of rows: a filter for each whole percent.
package speeds

import (
	"math"
	"sync"

	"github.com/xtts-host/xtts-host/shared/resample"
)

// The slowest and the fastest speed, in percent.
const (
	Slowest = 50
	Fastest = 200
)

var filters = func() (all [Fastest + 1]func() *resample.Resampler) {
	for p := Slowest; p <= Fastest; p++ {
		all[p] = sync.OnceValue(func() *resample.Resampler { return resample.NewShort(p, 100) })
	}
	return all
}()

// Filter returns the filter that plays samples at a speed in percent. It is made once in a process, which takes some
// 10 ms, and is safe for concurrent use.
func Filter(percent int) *resample.Resampler { return filters[percent]() }

// Percent rounds a speed to a whole percent.
func Percent(speed float64) int {
	return min(max(int(math.Round(100*speed)), Slowest), Fastest)
}
