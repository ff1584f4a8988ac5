package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// instanceNormalization is the mean and the variance of each channel of each row. If the channels are groups that a
// reshape has joined with the dimensions after them, as a group normalization does, it computes over the dimensions
// before: they can be in any order.
func (l *lowering) instanceNormalization(n *shapes.Node) bool {
	v := n.Out[0]
	x, shape := l.operand(n.In[0]), sizes(v)
	if v.Type != f32 || len(shape) < 3 {
		return false
	}
	if last := len(x.Views) - 1; last >= 0 && x.Views[last].Op == Reshape {
		x = Operand{x.Tensor, x.Views[:last]}.view(View{Op: Reshape, To: refined(x.Views[last].From, shape)})
	}
	over, axes, count := x.Shape(), []int{}, 1
	for i := kept(over, shape[0]*shape[1]); i < len(over); i++ {
		axes = append(axes, i)
		count *= over[i]
	}
	share := scalar(1/float64(count), f32)
	mean := func(x Operand, name string) Operand {
		sum := l.reduce("sum", v.Name+"/"+name+"sum", x, axes...)
		return l.elementwise("Mul", v.Name+"/"+name, f32, sum.Shape(), sum, share)
	}
	centered := l.elementwise("Sub", v.Name+"/centered", f32, over, x, mean(x, "mean"))
	variance := mean(l.elementwise("Mul", v.Name+"/square", f32, over, centered, centered), "variance")
	safe := l.elementwise("Add", v.Name+"/safe", f32, variance.Shape(), variance,
		scalar(float(n, "epsilon", 1e-5), f32))
	inverse := l.elementwise("Rsqrt", v.Name+"/inverse", f32, safe.Shape(), safe)
	y := l.elementwise("Mul", v.Name+"/normal", f32, over, centered, inverse)
	l.operands[v] = l.scaledChannels(n, y.view(View{Op: Reshape, To: shape}))
	return true
}

// batchNormalization uses a mean and a variance of each channel that the graph has computed, as PyTorch's instance
// normalization does with each channel of each row. In training mode, the operator computes them itself.
func (l *lowering) batchNormalization(n *shapes.Node) bool {
	v := n.Out[0]
	shape := sizes(v)
	if integer(n, "training_mode", 0) != 0 || v.Type != f32 || len(shape) < 2 || slices.ContainsFunc(n.In[1:5],
		func(v *shapes.Value) bool { return v == nil || v.Type != f32 }) {
		return false
	}
	mean, variance := l.operand(n.In[3]), l.operand(n.In[4])
	safe := l.elementwise("Add", v.Name+"/safe", f32, variance.Shape(), variance,
		scalar(float(n, "epsilon", 1e-5), f32))
	inverse := l.elementwise("Rsqrt", v.Name+"/inverse", f32, safe.Shape(), safe)
	centered := l.elementwise("Sub", v.Name+"/centered", f32, shape, l.operand(n.In[0]), ofChannels(mean, shape))
	y := l.elementwise("Mul", v.Name+"/normal", f32, shape, centered, ofChannels(inverse, shape))
	l.operands[v] = l.scaledChannels(n, y)
	return true
}

// scaledChannels multiplies each channel with its scale and adds its bias: the second and third input of the operator.
func (l *lowering) scaledChannels(n *shapes.Node, y Operand) Operand {
	v := n.Out[0]
	for i, op := range []string{"Mul", "Add"} {
		o := l.operand(n.In[i+1])
		if x, ok := small(o); ok && x == float64(1-i) || all(o, float64(1-i)) {
			continue
		}
		y = l.elementwise(op, v.Name+"/"+op, v.Type, y.Shape(), y, ofChannels(o, y.Shape()))
	}
	return y
}

// ofChannels shows what there is for each channel in the second dimension of a shape.
func ofChannels(o Operand, shape []int) Operand {
	to := []int{1, shape[1]}
	for range shape[2:] {
		to = append(to, 1)
	}
	return o.view(View{Op: Reshape, To: to})
}

// all reports whether an operand is a constant whose elements are all x.
func all(o Operand, x float64) bool {
	for _, y := range o.Tensor.Data {
		if y != x {
			return false
		}
	}
	return o.Tensor.Constant && len(o.Tensor.Data) > 0
}

// refined returns the dimensions of which those of both shapes are products, or to if there are none.
func refined(from, to []int) (shape []int) {
	a, b := append([]int{}, from...), append([]int{}, to...)
	for len(a) > 0 && len(b) > 0 {
		d := min(a[0], b[0])
		if d == 0 || a[0]%d != 0 || b[0]%d != 0 {
			return to
		}
		shape = append(shape, d)
		if a[0] /= d; a[0] == 1 {
			a = a[1:]
		}
		if b[0] /= d; b[0] == 1 {
			b = b[1:]
		}
	}
	return shape
}

// kept returns how many dimensions have so many elements.
func kept(shape []int, elements int) int {
	for i := range shape {
		if product(shape[:i]) == elements && (i == len(shape) || shape[i] > 1) {
			return i
		}
	}
	return len(shape)
}
