package fuse

import (
	"slices"
	"testing"
)

// TestDistances: a dimension of a product may be several neighbours of the result, or a part of one, but not an axis
// along which other results are between its elements.
func TestDistances(t *testing.T) {
	for name, c := range map[string]struct {
		shape, part, whole []int
		want               []int
	}{
		"as it is":                {[]int{6, 5, 8}, []int{6, 5, 8}, []int{6, 5, 8}, []int{40, 8, 1}},
		"two dimensions as one":   {[]int{6, 5, 8}, []int{2, 3, 5, 8}, []int{2, 3, 5, 8}, []int{40, 8, 1}},
		"three dimensions as one": {[]int{24, 8}, []int{2, 3, 4, 8}, []int{2, 3, 4, 8}, []int{8, 1}},
		"stacked": {
			[]int{6, 5, 8}, []int{1, 2, 3, 5, 8}, []int{3, 2, 3, 5, 8}, []int{40, 8, 1},
		},
		"one dimension as two": {
			[]int{2, 5, 3, 8}, []int{2, 5, 24}, []int{2, 5, 24}, []int{120, 24, 8, 1},
		},
		"side by side": {
			[]int{2, 5, 3, 8}, []int{2, 5, 24}, []int{2, 5, 72}, []int{360, 72, 8, 1},
		},
		"ones":                              {[]int{1, 6, 1, 8}, []int{6, 8}, []int{6, 8}, []int{0, 8, 0, 1}},
		"others between":                    {[]int{2, 120}, []int{2, 5, 24}, []int{2, 5, 72}, nil},
		"parts of neighbours":               {[]int{4, 3, 8}, []int{2, 6, 8}, []int{2, 6, 8}, []int{24, 8, 1}},
		"parts of neighbours, side by side": {[]int{4, 3, 8}, []int{2, 6, 8}, []int{2, 12, 8}, nil},
		"no divisor":                        {[]int{9, 4}, []int{6, 6}, []int{6, 6}, []int{4, 1}},
	} {
		product := &Tensor{Shape: c.shape}
		r := Result{
			Product: product, Out: &Tensor{Shape: c.whole},
			Views: []View{{Op: Reshape, From: c.shape, To: c.part}},
		}
		steps, ok := r.distances(c.shape)
		if ok != (c.want != nil) || ok && !slices.Equal(steps, c.want) {
			t.Errorf("%s: %v, %t; want %v", name, steps, ok, c.want)
		}
	}
}
