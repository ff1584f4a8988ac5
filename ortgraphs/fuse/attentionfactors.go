package fuse

import "slices"

// factor is what the elements of a tensor are multiplied with: an operand ("Mul"), its inverse ("Div"), or 1 where a condition holds and 0
// elsewhere ("Where"), as dropout has it.
type factor struct {
	op string
	of Operand
}

// sumsResult reports whether the sums along rows are those of dO * O, the gradient of the result times the result: the sum over the keys of
// softmax * mask * (dO V') is dO times the sum of softmax * mask * V, for any mask that both passes multiply with.
func (f *finding) sumsResult() bool {
	r, _ := f.reader(false, false)
	weights := f.factors(Operand{Tensor: r.node.In[r.operand].Tensor})
	return sameFactors(append(weights, factor{"Mul", Operand{Tensor: f.gradient.Out[0]}}), f.factors(f.sum.In[0]))
}

// factors divides an operand into factors, as far as nodes do nothing but multiply. The softmax is one of them. Conversions between types of
// floating point numbers do not count.
func (f *finding) factors(o Operand) []factor {
	n := o.Tensor.From
	if n == nil || n.Kind != Elementwise || o.Tensor == f.result || !straight(o) {
		return []factor{{"Mul", o}}
	}
	switch {
	case n.Op == "Copy" || n.Op == "Cast" && isFloat(n.In[0].Tensor.Type) && isFloat(n.Out[0].Type):
		return f.factors(n.In[0])
	case n.Op == "Mul":
		return append(f.factors(n.In[0]), f.factors(n.In[1])...)
	case n.Op == "Div":
		return append(f.factors(n.In[0]), factor{"Div", n.In[1]})
	case n.Op == "Where":
		if x, ok := small(n.In[2]); ok && x == 0 {
			return append(f.factors(n.In[1]), factor{"Where", n.In[0]})
		}
	}
	return []factor{{"Mul", o}}
}

// sameFactors reports whether two lists have the same factors, in any order.
func sameFactors(a, b []factor) bool {
	rest := slices.Clone(b)
	for _, x := range a {
		i := slices.IndexFunc(rest, x.equal)
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

func (x factor) equal(y factor) bool {
	if x.op != y.op {
		return false
	}
	if x.of.Tensor == y.of.Tensor {
		return sameViews(x.of.Views, y.of.Views) || straight(x.of) && straight(y.of)
	}
	a, ok := small(x.of)
	b, both := small(y.of)
	return ok && both && a == b
}
