package shapes

import (
	"math"
	"testing"
)

// TestProduct: more elements than an int64 counts are the most that it counts, and no elements stay none.
func TestProduct(t *testing.T) {
	for _, tt := range []struct {
		shape []int64
		want  int64
	}{
		{nil, 1}, {[]int64{2, 3, 4}, 24},
		{[]int64{1 << 32, 1 << 32}, math.MaxInt64}, {[]int64{1 << 31, 1 << 31, 4}, math.MaxInt64},
		{[]int64{1 << 62, 1 << 62, 0}, 0},
	} {
		if got := product(tt.shape); got != tt.want {
			t.Errorf("%d: %d, want %d", tt.shape, got, tt.want)
		}
	}
}
