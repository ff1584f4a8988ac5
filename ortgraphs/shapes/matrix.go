package shapes

import (
	"fmt"
	"slices"
)

// MatMulShapes returns the shapes of a matrix product's operands as they are multiplied: [batch..., m, k] and
// [batch..., k, n], after the transpositions of FusedMatMul, Gemm and FusedGemm, with a vector extended to a matrix. ok
// is false for other nodes and for unknown shapes.
func (n *Node) MatMulShapes() (a, b []int64, ok bool) {
	switch n.Op() {
	case "MatMul", "com.microsoft.FusedMatMul", "Gemm", "com.microsoft.FusedGemm":
	default:
		return nil, nil, false
	}
	if !n.Input(0).Known() || !n.Input(1).Known() || len(n.In[0].Shape) == 0 || len(n.In[1].Shape) == 0 {
		return nil, nil, false
	}
	a, b = slices.Clone(n.In[0].Shape), slices.Clone(n.In[1].Shape)
	if len(a) == 1 {
		a = []int64{1, a[0]}
	}
	if len(b) == 1 {
		b = []int64{b[0], 1}
	}
	turn := func(s []int64, batch, inner string) {
		if n.Integer(batch, 0) != 0 && len(s) > 2 { // the first dimension moves between the last two
			first := s[0]
			copy(s, s[1:len(s)-1])
			s[len(s)-2] = first
		}
		if n.Integer(inner, 0) != 0 {
			s[len(s)-1], s[len(s)-2] = s[len(s)-2], s[len(s)-1]
		}
	}
	turn(a, "transBatchA", "transA")
	turn(b, "transBatchB", "transB")
	return a, b, true
}

func matMul(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	a, b, ok := n.MatMulShapes()
	if !ok {
		return fmt.Errorf("a scalar is not a matrix")
	}
	if a[len(a)-1] != b[len(b)-2] {
		return fmt.Errorf("%d by %d do not multiply", a, b)
	}
	shape, err := broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		return err
	}
	if len(n.In[0].Shape) > 1 {
		shape = append(shape, a[len(a)-2])
	}
	if len(n.In[1].Shape) > 1 {
		shape = append(shape, b[len(b)-1])
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func gemm(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	a, b, ok := n.MatMulShapes()
	if !ok || len(a) != 2 || len(b) != 2 || a[1] != b[0] {
		return fmt.Errorf("%d by %d do not multiply", n.In[0].Shape, n.In[1].Shape)
	}
	shape := []int64{a[0], b[1]}
	if c := n.Input(2); c != nil {
		if whole, err := broadcast(shape, c.Shape); err != nil || !slices.Equal(whole, shape) {
			return fmt.Errorf("%d cannot be added to %d", c.Shape, shape)
		}
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

func conv(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	x, w := n.In[0].Shape, n.In[1].Shape
	if len(x) < 3 || len(w) != len(x) {
		return fmt.Errorf("an input of %d and a kernel of %d", x, w)
	}
	if group := n.Integer("group", 1); group <= 0 || x[1] != w[1]*group {
		return fmt.Errorf("%d channels, the kernel is for %d in %d groups", x[1], w[1], group)
	}
	spatial := len(x) - 2
	strides, dilations, pads := n.integers("strides", spatial, 1), n.integers("dilations", spatial, 1),
		n.integers("pads", 2*spatial, 0)
	auto := "NOTSET"
	if a := n.Attribute("auto_pad"); a != nil {
		auto = string(a.GetS())
	}
	shape := []int64{x[0], w[0]}
	for i := range spatial {
		if strides[i] <= 0 {
			return fmt.Errorf("a stride of %d", strides[i])
		}
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			shape = append(shape, (x[2+i]+strides[i]-1)/strides[i])
		default:
			shape = append(shape, (x[2+i]+pads[i]+pads[spatial+i]-dilations[i]*(w[2+i]-1)-1)/strides[i]+1)
		}
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

// convTranspose is the size of the input whose convolution has this one's size.
func convTranspose(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	x, w := n.In[0].Shape, n.In[1].Shape
	group := n.Integer("group", 1)
	if len(x) < 3 || len(w) != len(x) || group <= 0 || x[1] != w[0] {
		return fmt.Errorf("an input of %d and a kernel of %d in %d groups", x, w, group)
	}
	if n.Attribute("auto_pad") != nil && string(n.Attribute("auto_pad").GetS()) != "NOTSET" ||
		n.Attribute("output_shape") != nil {
		types(n)
		return nil
	}
	spatial := len(x) - 2
	strides, dilations, pads := n.integers("strides", spatial, 1), n.integers("dilations", spatial, 1),
		n.integers("pads", 2*spatial, 0)
	more := n.integers("output_padding", spatial, 0)
	shape := []int64{x[0], w[1] * group}
	for i := range spatial {
		shape = append(shape, strides[i]*(x[2+i]-1)+more[i]+dilations[i]*(w[2+i]-1)+1-pads[i]-pads[spatial+i])
	}
	n.set(0, n.In[0].Type, shape)
	return nil
}

// integers returns an attribute of so many integers, or as many times otherwise.
func (n *Node) integers(name string, count int, otherwise int64) []int64 {
	if a := n.Attribute(name); a != nil && len(a.Ints) == count {
		return a.Ints
	}
	return slices.Repeat([]int64{otherwise}, count)
}
