package fuse

import "slices"

// factor is what the elements of a tensor are multiplied with: an operand ("Mul"), its inverse ("Div"), or 1 where a
// condition holds and 0 elsewhere ("Where"), as dropout has it, or the other way round ("WhereNot").
type factor struct {
	op string
	of Operand
}

// sumsResult reports whether the sums along rows are those of dO * O, the gradient of the result times the result: the
// sum over the keys of softmax * mask * (dO V') is dO times the sum of softmax * mask * V, for any mask that both
// passes multiply with. The result has been rounded to bf16, so the sums differ by that from those of the scores.
func (f *finding) sumsResult() bool {
	r, _ := f.reader(false, false)
	places := factoring{softmax: f.result, places: f.elements()}
	weights := places.factors(Operand{Tensor: r.node.In[r.operand].Tensor})
	return places.same(append(weights, factor{"Mul", Operand{Tensor: f.gradient.Out[0]}}), places.factors(f.sum.In[0]))
}

// factoring finds the factors of tensors with an element for each place.
type factoring struct {
	softmax *Tensor
	places  int
}

// factors divides an operand into factors, as far as nodes do nothing but multiply. The softmax is one of them.
// Conversions between types of floating point numbers do not count. What has fewer elements than the scores stays
// whole, because its views say where it is multiplied.
func (f factoring) factors(o Operand) []factor {
	n := o.Tensor.From
	if n == nil || n.Kind != Elementwise || o.Tensor == f.softmax || o.Tensor.Elements() != f.places || !straight(o) {
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
		if x, ok := small(n.In[1]); ok && x == 0 {
			return append(f.factors(n.In[2]), factor{"WhereNot", n.In[0]})
		}
	}
	return []factor{{"Mul", o}}
}

// same reports whether two lists have the same factors, in any order.
func (f factoring) same(a, b []factor) bool {
	rest := slices.Clone(b)
	for _, x := range a {
		i := slices.IndexFunc(rest, func(y factor) bool { return x.op == y.op && f.sameElements(x.of, y.of) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

// sameElements reports whether two operands have the same element at each place.
func (f factoring) sameElements(x, y Operand) bool {
	if x.Tensor == y.Tensor {
		whole := x.Tensor.Elements() == f.places && straight(x) && straight(y)
		return whole || x.Tensor.Elements() == 1 || sameViews(x.Views, y.Views)
	}
	a, ok := small(x)
	b, both := small(y)
	return ok && both && a == b
}
