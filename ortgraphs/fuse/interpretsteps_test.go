package fuse_test

import (
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// cumulate returns what a node combines of the elements up to each one, one after another.
func cumulate(n *fuse.Node, x []func([]int) number) []number {
	shape, axis := n.Out[0].Shape, n.Axes[0]
	y, index, stride := make([]number, elements(shape)), make([]int, len(shape)), elements(shape[axis+1:])
	for i := range y {
		if fuse.Unflatten(i, shape, index); index[axis] > 0 {
			continue
		}
		var sum number
		if n.Op != "CumSum" {
			sum = x[len(x)-1](index)
		}
		for j := range shape[axis] {
			if index[axis] = j; n.Reverse {
				index[axis] = shape[axis] - 1 - j
			}
			next, to := passOn(n, sum, x, index), i+index[axis]*stride
			if y[to] = next; n.Exclusive {
				y[to] = sum
			}
			if sum = next; !isInteger(n.Out[0].Type) {
				y[to] = of(y[to].f, n.Out[0].Type)
			}
		}
	}
	return y
}

// passOn is what a node makes of a number and the elements at a place.
func passOn(n *fuse.Node, sum number, x []func([]int) number, index []int) number {
	item := x[0](index)
	switch n.Op {
	case fuse.Affine:
		return number{f: item.f*sum.f + x[1](index).f}
	case fuse.LogAddExp:
		if math.IsInf(sum.f, 0) && sum.f == item.f {
			return sum
		}
		return number{f: max(sum.f, item.f) + math.Log1p(math.Exp(-math.Abs(sum.f-item.f)))}
	}
	return number{sum.f + item.f, sum.i + item.i}
}
