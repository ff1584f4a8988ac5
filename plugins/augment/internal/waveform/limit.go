package waveform

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
)

// MaxAbs is the largest magnitude of a sample that the ports in plugin.json may have: the host rejects a row beyond it.
const MaxAbs = 8

// Limit scales samples whose peak is above MaxAbs to a peak of MaxAbs. It returns the change of their level in dB, 0 if
// it leaves them as they are. It leaves samples of which one is not finite: the host rejects them.
func Limit(samples []float32) (db float64) {
	peak := vector.Peak(samples)
	if peak <= MaxAbs || peak-peak != 0 {
		return 0
	}
	// The next smaller float32 is below the quotient, so no product is rounded to more than MaxAbs.
	factor := float64(math.Nextafter32(float32(MaxAbs/float64(peak)), 0))
	Scale(samples, factor)
	return 20 * math.Log10(factor)
}
