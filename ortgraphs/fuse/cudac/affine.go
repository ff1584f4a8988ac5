package cudac

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// affine is a sum of integer variables with factors, and a constant.
type affine struct {
	constant int
	factors  map[string]int // by variable, without zeros
}

func variable(name string, factor int) affine {
	if factor == 0 {
		return affine{}
	}
	return affine{factors: map[string]int{name: factor}}
}

func (e affine) plus(f affine) affine {
	out := affine{e.constant + f.constant, maps.Clone(e.factors)}
	for name, factor := range f.factors {
		if out.factors == nil {
			out.factors = map[string]int{}
		}
		if out.factors[name] += factor; out.factors[name] == 0 {
			delete(out.factors, name)
		}
	}
	return out
}

func (e affine) plusConstant(c int) affine { return affine{e.constant + c, e.factors} }

func (e affine) times(k int) affine {
	out := affine{constant: e.constant * k}
	if k == 0 {
		return out
	}
	out.factors = make(map[string]int, len(e.factors))
	for name, factor := range e.factors {
		out.factors[name] = factor * k
	}
	return out
}

// dividedBy returns the quotient and the rest of each term by k.
func (e affine) dividedBy(k int) (quotient, rest affine) {
	rest.constant = ((e.constant % k) + k) % k
	quotient.constant = (e.constant - rest.constant) / k
	for name, factor := range e.factors {
		if factor%k == 0 {
			quotient = quotient.plus(variable(name, factor/k))
		} else {
			rest = rest.plus(variable(name, factor))
		}
	}
	return quotient, rest
}

// String is the sum in C. It identifies the sum.
func (e affine) String() string {
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(e.factors)) {
		if factor := e.factors[name]; factor == 1 {
			terms = append(terms, name)
		} else {
			terms = append(terms, fmt.Sprintf("%s*%d", name, factor))
		}
	}
	if e.constant != 0 || len(terms) == 0 {
		terms = append(terms, fmt.Sprint(e.constant))
	}
	return strings.ReplaceAll(strings.Join(terms, "+"), "+-", "-")
}
