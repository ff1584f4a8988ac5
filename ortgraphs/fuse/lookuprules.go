package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// gather lowers a look-up at a constant place: a slice.
func (l *lowering) gather(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	axis, ok := within(integer(n, "axis", 0), len(x.Shape()))
	place, one := small(l.operand(n.In[1]))
	if !ok || !one {
		return false
	}
	size := x.Shape()[axis]
	if at := int(place); at >= -size && at < size {
		l.operands[v] = cut(x, axis, (at+size)%size, 1, 1).view(View{Op: Reshape, To: sizes(v)})
		return true
	}
	return false
}

// gatherElements lowers the look-up of one element of each row: the sum of the row where its index is the one looked
// for. It joins the region that computes the row, as a cross entropy does.
func (l *lowering) gatherElements(n *shapes.Node) bool {
	x, index, v := l.operand(n.In[0]), l.operand(n.In[1]), n.Out[0]
	shape := x.Shape()
	last := len(shape) - 1
	axis, ok := within(integer(n, "axis", 0), len(shape))
	if !ok || axis != last || shape[last] > maxRow || !isFloat(v.Type) || v.Shape[last] != 1 ||
		!slices.Equal(sizes(v)[:last], shape[:last]) {
		return false
	}
	places := &Tensor{Name: v.Name + "/places", Type: index.Tensor.Type, Shape: []int{shape[last]}, Constant: true}
	for i := range shape[last] {
		places.Data = append(places.Data, float64(i))
	}
	kind, boolean, size := index.Tensor.Type, onnxpb.TensorProto_BOOL, scalar(float64(shape[last]), index.Tensor.Type)
	wrapped := l.elementwise("Add", v.Name+"/behind", kind, sizes(v), index, size)
	negative := l.elementwise("Less", v.Name+"/negative", boolean, sizes(v), index, scalar(0, kind))
	place := l.elementwise("Where", v.Name+"/place", kind, sizes(v), negative, wrapped, index)
	here := l.elementwise("Equal", v.Name+"/here", boolean, shape, place, Operand{Tensor: places})
	chosen := l.elementwise("Where", v.Name+"/chosen", v.Type, shape, here, x, scalar(0, v.Type))
	l.operands[v] = l.reduce("sum", v.Name, chosen, last)
	return true
}
