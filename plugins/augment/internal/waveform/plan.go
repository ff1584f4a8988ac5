package waveform

import (
	"math/bits"
	"sync"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/shared/fft"
)

// plans has the transforms of 2^i numbers, for all stages of the process.
var plans = func() (all [31]func() fft.Plan) {
	for i := range all {
		all[i] = sync.OnceValue(func() fft.Plan { return fft.NewWith(1<<i, vector.Radix4) })
	}
	return all
}()

// FFTSize returns the smallest number that is not below n and whose transform Row.Transform has.
func FFTSize(n int) int { return max(8, 1<<bits.Len(uint(n-1))) }

// Transform returns the worker's transform of an FFTSize.
func (r *Row) Transform(size int) fft.Transform {
	i := bits.TrailingZeros(uint(size))
	if r.transforms[i] == nil {
		r.transforms[i] = plans[i]().Transform()
	}
	return r.transforms[i]
}
