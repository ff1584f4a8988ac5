package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBlocks: of numbers that follow each other and are alike, the mean is within two errors in most cases, as it is of
// independent ones. The error of single numbers is too small for that.
func TestBlocks(t *testing.T) {
	for _, c := range []struct{ alike, least float64 }{{0, 0.93}, {0.6, 0.9}, {0.8, 0.8}} {
		const series, length = 2000, 100
		within, naive := 0, 0
		random := rand.New(rand.NewPCG(1, 2))
		for range series {
			var b Blocks
			v := random.NormFloat64()
			for range length {
				b.Add(10 + v)
				v = c.alike*v + math.Sqrt(1-c.alike*c.alike)*random.NormFloat64()
			}
			if math.Abs(b.all.Mean-10) < 2*b.Error() {
				within++
			}
			if math.Abs(b.all.Mean-10) < 2*b.all.Std()/math.Sqrt(length) {
				naive++
			}
		}
		t.Logf("alike %.1f: %.3f, by single numbers %.3f", c.alike, float64(within)/series, float64(naive)/series)
		if share := float64(within) / series; share < c.least || share > 0.995 {
			t.Errorf("alike %g: %.3f are within two errors", c.alike, share)
		}
		if c.alike > 0.5 && float64(naive)/series > 0.7 {
			t.Error("the numbers are not alike enough for the test")
		}
	}
	var few Blocks
	if few.Add(3); few.Error() != 0 {
		t.Error(few.Error())
	}
	for range 1000 {
		few.Add(3)
	}
	if e := few.Error(); e != 0 || len(few.means) >= mostBlocks {
		t.Errorf("%g, %d blocks", e, len(few.means))
	}
}
