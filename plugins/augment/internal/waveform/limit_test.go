package waveform

import (
	"math"
	"testing"
)

// TestLimit: whatever the peak is, no sample is rounded to more than MaxAbs. Samples within it, and those that are not
// finite, stay as they are.
func TestLimit(t *testing.T) {
	for peak := float32(8.000001); peak < 1e38; peak *= 1.01 {
		x := []float32{1, -peak}
		db := Limit(x)
		if x[1] < -MaxAbs || x[1] > -MaxAbs*(1-1e-6) || math.Abs(db-20*math.Log10(MaxAbs/float64(peak))) > 1e-5 {
			t.Fatalf("a peak of %g becomes %g, by %g dB", peak, x[1], db)
		}
	}
	for _, x := range [][]float32{nil, {1, -8}, {9, float32(math.Inf(1))}, {9, float32(math.NaN())}} {
		if db := Limit(x); db != 0 || len(x) > 0 && x[0] != 1 && x[0] != 9 {
			t.Errorf("%v, by %g dB", x, db)
		}
	}
}
