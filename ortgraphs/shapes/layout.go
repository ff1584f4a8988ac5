package shapes

import (
	"fmt"
	"slices"
)

// The operators that move elements without changing them, and those about shapes.

func transpose(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0].Shape
	shape := slices.Clone(x)
	if a := n.Attribute("perm"); a != nil {
		if len(a.Ints) != len(x) {
			return fmt.Errorf("perm %d for the shape %d", a.Ints, x)
		}
		seen := make([]bool, len(x))
		for i, p := range a.Ints {
			k, err := axis(p, len(x))
			if err != nil {
				return err
			}
			if seen[k] {
				return fmt.Errorf("perm %d has axis %d twice", a.Ints, k)
			}
			shape[i], seen[k] = x[k], true
		}
	} else {
		slices.Reverse(shape)
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func reshape(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	x := n.In[0]
	want, _, ok := n.Integers(1, "")
	if !ok {
		return nil
	}
	shape, free, rest := make([]int64, len(want)), -1, int64(1)
	for i, d := range want {
		if d < -1 {
			return fmt.Errorf("%d cannot be reshaped to %d", x.Shape, want)
		}
		if d == 0 && n.Integer("allowzero", 0) == 0 {
			if i >= len(x.Shape) {
				return fmt.Errorf("%d cannot be reshaped to %d", x.Shape, want)
			}
			d = x.Shape[i]
		}
		shape[i] = d
		if d == -1 {
			free = i
		} else {
			rest *= d
		}
	}
	total := product(x.Shape)
	if free >= 0 && rest > 0 && total%rest == 0 {
		shape[free] = total / rest
		rest = total
	}
	if rest != total || slices.Contains(shape, -1) {
		return fmt.Errorf("%d cannot be reshaped to %d", x.Shape, want)
	}
	n.set(0, x.Type, shape)
	return nil
}

func flatten(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0].Shape
	a := n.Integer("axis", 1)
	if a < 0 {
		a += int64(len(x))
	}
	if a < 0 || a > int64(len(x)) {
		return fmt.Errorf("axis %d of %d", a, x)
	}
	n.set(0, n.In[0].Type, []int64{product(x[:a]), product(x[a:])})
	return nil
}

func unsqueeze(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	axes, _, ok := n.Integers(1, "axes")
	if !ok {
		return nil
	}
	x := n.In[0].Shape
	rank := len(x) + len(axes)
	added := make([]bool, rank)
	for _, a := range axes {
		i, err := axis(a, rank)
		if err != nil {
			return err
		}
		added[i] = true
	}
	shape := []int64{}
	for i := range rank {
		if added[i] {
			shape = append(shape, 1)
		} else if len(x) > 0 {
			shape, x = append(shape, x[0]), x[1:]
		}
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func squeeze(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	axes, given, ok := n.Integers(1, "axes")
	if !ok {
		return nil
	}
	x := n.In[0].Shape
	if !given {
		for i, d := range x {
			if d == 1 {
				axes = append(axes, int64(i))
			}
		}
	}
	for _, a := range axes {
		i, err := axis(a, len(x))
		if err != nil {
			return err
		}
		if x[i] != 1 {
			return fmt.Errorf("axis %d of %d is not 1", a, x)
		}
	}
	shape, err := without(x, axes, false)
	if err != nil {
		return err
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func concat(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	shape := slices.Clone(n.In[0].Shape)
	a, err := axis(n.Integer("axis", 0), len(shape))
	if err != nil {
		return err
	}
	for _, v := range n.In[1:] {
		if v == nil || len(v.Shape) != len(shape) {
			return fmt.Errorf("inputs of different ranks")
		}
		for i, d := range v.Shape {
			if i != a && d != shape[i] {
				return fmt.Errorf("%d and %d do not match along axis %d", n.In[0].Shape, v.Shape, a)
			}
		}
		shape[a] += v.Shape[a]
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func split(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0]
	a, err := axis(n.Integer("axis", 0), len(x.Shape))
	if err != nil {
		return err
	}
	sizes, given, ok := n.Integers(1, "split")
	if !ok {
		return nil
	}
	if !given {
		parts := n.Integer("num_outputs", int64(len(n.Out)))
		if parts <= 0 || parts > int64(len(n.Out)) {
			return fmt.Errorf("%d parts for %d outputs", parts, len(n.Out))
		}
		each := (x.Shape[a] + parts - 1) / parts
		for left := x.Shape[a]; left > 0; left -= each {
			sizes = append(sizes, min(each, left))
		}
	}
	sum := int64(0)
	for i, d := range sizes {
		sum += d
		shape := slices.Clone(x.Shape)
		shape[a] = d
		n.set(i, x.Type, shape)
	}
	if sum != x.Shape[a] || len(sizes) != len(n.Out) {
		return fmt.Errorf("%d along axis %d is not split into %d", x.Shape, a, sizes)
	}
	return nil
}

func slice(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0]
	starts, _, ok1 := n.Integers(1, "starts")
	ends, _, ok2 := n.Integers(2, "ends")
	axes, given, ok3 := n.Integers(3, "axes")
	steps, stepped, ok4 := n.Integers(4, "")
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil
	}
	shape := slices.Clone(x.Shape)
	for i, start := range starts {
		at, step := int64(i), int64(1)
		if given && i < len(axes) {
			at = axes[i]
		}
		if stepped && i < len(steps) {
			step = steps[i]
		}
		k, err := axis(at, len(shape))
		if err != nil {
			return err
		}
		if i >= len(ends) || step == 0 {
			return fmt.Errorf("starts %d, ends %d, steps %d", starts, ends, steps)
		}
		shape[k] = span(start, ends[i], step, x.Shape[k])
	}
	n.set(0, x.Type, shape)
	return nil
}

// span returns the number of elements from start to end, both clamped as specified for the operator.
func span(start, end, step, size int64) int64 {
	first, count := clamp(start, step, size), int64(0)
	last := end
	if last < 0 {
		last += size
	}
	if step > 0 {
		last = min(max(last, 0), size)
		count = (last - first + step - 1) / step
	} else {
		last = min(max(last, -1), size-1)
		if end < -size {
			last = -1
		}
		count = (first - last - step - 1) / -step
	}
	return max(count, 0)
}

// clamp returns where a slice begins.
func clamp(start, step, size int64) int64 {
	if start < 0 {
		start += size
	}
	if step > 0 {
		return min(max(start, 0), size)
	}
	return min(max(start, 0), size-1)
}

func gather(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	x, indices := n.In[0], n.In[1]
	a, err := axis(n.Integer("axis", 0), len(x.Shape))
	if err != nil {
		return err
	}
	n.set(0, x.Type, slices.Concat(x.Shape[:a], indices.Shape, x.Shape[a+1:]))
	return nil
}

func gatherElements(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	n.set(0, n.In[0].Type, slices.Clone(n.In[1].Shape))
	return nil
}

func gatherND(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	x, indices := n.In[0].Shape, n.In[1].Shape
	batch := n.Integer("batch_dims", 0)
	if len(indices) == 0 || batch < 0 || batch > int64(len(x)) || batch+indices[len(indices)-1] > int64(len(x)) {
		return fmt.Errorf("indices of %d in a tensor of %d", indices, x)
	}
	n.set(0, n.In[0].Type, slices.Concat(indices[:len(indices)-1], x[batch+indices[len(indices)-1]:]))
	return nil
}

func expand(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	want, _, ok := n.Integers(1, "")
	if !ok {
		return nil
	}
	shape, err := broadcast(n.In[0].Shape, want)
	if err != nil {
		return err
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func tile(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	repeats, _, ok := n.Integers(1, "")
	if !ok {
		return nil
	}
	shape := slices.Clone(n.In[0].Shape)
	if len(repeats) != len(shape) {
		return fmt.Errorf("repeats %d for the shape %d", repeats, shape)
	}
	for i, r := range repeats {
		shape[i] *= r
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func padding(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	pads, _, ok := n.Integers(1, "pads")
	axes, given, ok2 := n.Integers(3, "")
	if !ok || !ok2 {
		return nil
	}
	shape := slices.Clone(n.In[0].Shape)
	if !given {
		for i := range shape {
			axes = append(axes, int64(i))
		}
	}
	if len(pads) != 2*len(axes) {
		return fmt.Errorf("pads %d for %d axes", pads, len(axes))
	}
	for i, at := range axes {
		k, err := axis(at, len(shape))
		if err != nil {
			return err
		}
		shape[k] += pads[i] + pads[len(axes)+i]
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func oneHot(n *Node) error {
	if err := needs(n, 3); err != nil {
		return err
	}
	depth, _, ok := n.Integers(1, "")
	if !ok || len(depth) != 1 {
		return nil
	}
	x := n.In[0].Shape
	a, err := axis(n.Integer("axis", -1), len(x)+1)
	if err != nil {
		return err
	}
	n.set(0, n.In[2].Type, slices.Insert(slices.Clone(x), a, depth[0]))
	return nil
}
