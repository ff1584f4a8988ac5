package fuse

import (
	"slices"
)

// classify finds out what each product is that reads a matrix of all places.
func (f *finding) classify() bool {
	want := 1
	if f.gradient != nil {
		want = 4
		if f.sum == nil {
			return false
		}
	}
	if len(f.readers) != want {
		return false
	}
	for _, turned := range []bool{false, true} {
		for _, gradient := range []bool{false, true} {
			if _, ok := f.reader(turned, gradient); !ok && (want == 4 || !turned && !gradient) {
				return false
			}
		}
	}
	result, _ := f.reader(false, false)
	return homogeneous(result.node.In[result.operand].Tensor, f.result) && f.headSizes() &&
		(want == 1 || f.sameMatrices())
}

// maxHead is the largest number of columns of a matrix, of which a kernel keeps a tile.
const maxHead = 128

// headSizes reports whether the kernels have the sizes of all matrices.
func (f *finding) headSizes() bool {
	matrices, results := []*Matrix{f.query(), f.key()}, true
	if f.gradient != nil {
		matrices = append(matrices, f.resultGrad(), f.value())
	}
	_, size, _ := f.query().size()
	fits := func(m *Matrix) bool {
		_, columns, _ := m.size()
		return columns == size
	}
	for _, r := range f.readers {
		results = results && fits(r.other()) && r.node.Out[0].Type == f.element
	}
	return results && size%16 == 0 && size <= maxHead &&
		!slices.ContainsFunc(matrices, func(m *Matrix) bool { return m.Tensor.Type != f.element || !fits(m) })
}

// reader returns the product that sums over queries, if turned, and depends on the gradient.
func (f *finding) reader(turned, gradient bool) (reader, bool) {
	i := slices.IndexFunc(f.readers,
		func(r reader) bool { return r.turned == turned && r.source&ofGradient != 0 == gradient })
	if i < 0 {
		return reader{}, false
	}
	return f.readers[i], true
}

// homogeneous reports whether a tensor is the result of a softmax with each element multiplied by something: then the
// kernel divides by the sum of a row at its end.
func homogeneous(t, result *Tensor) bool {
	for t != result {
		n := t.From
		if n == nil || n.Kind != Elementwise {
			return false
		}
		on := -1
		for i, o := range n.In {
			if !dependsOn(o.Tensor, result) {
				continue
			}
			if on >= 0 {
				return false
			}
			on = i
		}
		switch {
		case on < 0:
			return false
		case n.Op == "Cast" || n.Op == "Copy" || n.Op == "Mul" || n.Op == "Div" && on == 0:
		case n.Op == "Where" && on > 0:
			if x, ok := small(n.In[3-on]); !ok || x != 0 {
				return false
			}
		default:
			return false
		}
		t = n.In[on].Tensor
	}
	return true
}

func dependsOn(t, on *Tensor) bool {
	if t == on {
		return true
	}
	return t.From != nil && t.From.Kind == Elementwise && t.Elements() >= on.Elements() &&
		slices.ContainsFunc(t.From.In, func(o Operand) bool { return dependsOn(o.Tensor, on) })
}
