package steady

import "testing"

// TestRisk has products and sums of which was measured whether the bits differ with 2, 3, 4, 7 or 16 threads (ONNX
// Runtime 1.29.0).
func TestRisk(t *testing.T) {
	for _, tt := range []struct {
		p    product
		want bool
	}{
		{product{1, 40, 96, 192, false, true}, true},
		{product{1, 80, 96, 192, false, true}, true},
		{product{1, 40, 96, 192, true, true}, false},    // its left operand is transposed
		{product{1, 120, 96, 192, false, true}, false},  // more rows than columns
		{product{1, 40, 192, 96, false, true}, false},   // few products in a sum
		{product{1, 1, 1000, 1000, false, true}, false}, // a vector
		{product{1, 2, 300, 2000, false, false}, true},
		{product{1, 7, 7, 20000, false, false}, true}, // a thread has one row
		{product{1, 701, 1, 96, false, false}, true},  // one column
		{product{1, 701, 1, 96, false, true}, false},
		{product{64, 40, 96, 192, false, true}, false}, // as many products as threads
	} {
		if got := tt.p.unsteady(); got != tt.want {
			t.Errorf("%+v: %v", tt.p, got)
		}
	}
	for _, tt := range []struct {
		shape, axes []int64
		want        bool
	}{
		{[]int64{2, 300, 96}, []int64{1}, true},
		{[]int64{16, 300, 96}, []int64{1}, false},
		{[]int64{1, 300, 96}, []int64{1}, false},
		{[]int64{4, 3, 500}, []int64{0, 2}, true},
		{[]int64{8, 96, 300}, []int64{0, 2}, false},
		{[]int64{3, 5000}, []int64{1}, false},
		{[]int64{5000, 3}, []int64{0}, false},
		{[]int64{2, 4, 300, 96}, []int64{2}, true}, // 8 results for 16 threads
		{[]int64{3, 40, 5, 60}, []int64{1, 3}, false},
	} {
		if got := sumUnsteady(tt.shape, tt.axes); got != tt.want {
			t.Errorf("%v over %v: %v", tt.shape, tt.axes, got)
		}
	}
}
