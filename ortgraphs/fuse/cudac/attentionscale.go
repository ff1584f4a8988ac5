package cudac

import (
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// scaled returns a tensor of which t is a multiple, by a power of two. A product of t is the same multiple of that
// tensor's, and has far fewer elements.
func scaled(t *fuse.Tensor) (*fuse.Tensor, float64) {
	n := t.From
	if n == nil || n.Kind != fuse.Elementwise || !isFloat(t.Type) {
		return t, 1
	}
	for i, o := range n.In {
		switch {
		case !o.Plain() || !isFloat(o.Tensor.Type) || o.Tensor.Elements() != t.Elements():
		case n.Op == "Cast":
			return scaled(o.Tensor)
		case n.Op == "Mul":
			factor := n.In[1-i].Tensor
			if !factor.Constant || len(factor.Data) != 1 {
				continue
			}
			if fraction, _ := math.Frexp(factor.Data[0]); fraction == 0.5 {
				of, further := scaled(o.Tensor)
				return of, further * factor.Data[0]
			}
		}
	}
	return t, 1
}
