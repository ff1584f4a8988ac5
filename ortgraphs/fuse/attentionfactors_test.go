package fuse_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestSumsOfResult: the backward pass reads the result of the forward pass rather than computing all scores twice, with any mask that both
// passes multiply with.
func TestSumsOfResult(t *testing.T) {
	for name, c := range map[string]struct {
		attending
		want bool
	}{
		"without a mask":            {attending{lengths: true}, true},
		"dropout":                   {attending{dropout: true}, true},
		"dropout of hashes":         {attending{dropout: true, form: "hashes"}, true},
		"gradients of other values": {attending{form: "other values"}, false},
		"another dropout":           {attending{dropout: true, form: "other dropout"}, false},
	} {
		a := c.attending
		a.batch, a.heads, a.queries, a.keys, a.head = 2, 2, 9, 11, 16
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		found := false
		for _, r := range regions {
			if r.Attention != nil && r.Attention.Backward != nil {
				found = true
				if got := r.Attention.Backward.Result != nil; got != c.want {
					t.Errorf("%s: reads the result: %t, want %t", name, got, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no gradient of attention", name)
		}
	}
}
