package cudac

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// places computes the place of an element in memory from the index of the region's domain.
type places struct {
	sizes []int // of the axes
	// limits has the number of values of each variable, which begin at 0: the axes a0, a1, ..., those of divisions, and
	// those of guarded.
	limits map[string]int
	// divisions define variables, each after those that it uses.
	divisions []division
	known     map[string]int // divisions by what they compute
	// guarded has the values of variables that stand for values with guards.
	guarded map[string]affine
}

// division defines a variable: the quotient of a value by divisor, or its rest.
type division struct {
	name    string
	value   affine
	divisor int
	rest    bool
}

// guard says that an element is there if value is at least from and below to.
type guard struct {
	value    affine
	from, to int
}

func newPlaces(sizes []int) *places {
	p := &places{sizes: sizes, limits: map[string]int{}, known: map[string]int{}, guarded: map[string]affine{}}
	for i, size := range sizes {
		p.limits[axisName(i)] = size
	}
	return p
}

func (p *places) clone() *places {
	return &places{
		sizes: p.sizes, limits: maps.Clone(p.limits), divisions: slices.Clone(p.divisions), known: maps.Clone(p.known),
		guarded: maps.Clone(p.guarded),
	}
}

func axisName(axis int) string { return fmt.Sprintf("a%d", axis) }

// bounds returns the smallest and the largest value.
func (p *places) bounds(e affine) (least, most int) {
	least, most = e.constant, e.constant
	for name, factor := range e.factors {
		if end := factor * (p.limits[name] - 1); end > 0 {
			most += end
		} else {
			least += end
		}
	}
	return least, most
}

func (p *places) define(q division, limit int) affine {
	key := fmt.Sprintf("%s %d %t %d", q.value, q.divisor, q.rest, limit)
	i, ok := p.known[key]
	if !ok {
		i = len(p.divisions)
		q.name = fmt.Sprintf("q%d", i)
		p.known[key] = i
		p.divisions = append(p.divisions, q)
		p.limits[q.name] = limit
	}
	return variable(p.divisions[i].name, 1)
}

// divide returns e/k and e%k of a value that is from 0 up to limit wherever the element exists. Elsewhere it may be
// negative, for which C rounds the quotient towards 0: a guard keeps that from being used.
func (p *places) divide(e affine, k, limit int) (quotient, rest affine) {
	switch {
	case k == 1:
		return e, affine{}
	case limit <= k:
		return affine{}, e
	}
	value := p.expand(e)
	for _, form := range []affine{e, value} {
		quotient, rest = form.dividedBy(k)
		if least, most := p.bounds(rest); least >= 0 && most < k {
			return quotient, rest
		}
	}
	_, most := p.bounds(e)
	most = max(0, min(most, limit-1))
	return p.define(division{value: value, divisor: k}, most/k+1),
		p.define(division{value: value, divisor: k, rest: true}, k)
}

// within returns a value for which bounds knows that it is from 0 up to limit, because a guard says so.
func (p *places) within(e affine, limit int) affine {
	if least, most := p.bounds(e); least >= 0 && most < limit {
		return e
	}
	name := fmt.Sprintf("i%d", len(p.guarded))
	p.guarded[name], p.limits[name] = p.expand(e), limit
	return variable(name, 1)
}

// expand returns the value without variables of within, as the program computes it.
func (p *places) expand(e affine) affine {
	out := e
	for name, factor := range e.factors {
		if value, ok := p.guarded[name]; ok {
			out = out.plus(variable(name, -factor)).plus(value.times(factor))
		}
	}
	return out
}

// index returns the index into a shape whose dimensions have these axes.
func (p *places) index(axes [][]int) []affine {
	out := make([]affine, len(axes))
	for i, list := range axes {
		step := 1
		for j := len(list) - 1; j >= 0; j-- {
			out[i] = out[i].plus(variable(axisName(list[j]), step))
			step *= p.sizes[list[j]]
		}
	}
	return out
}

// back returns the index into the tensor of an operand from the index into the operand.
func (p *places) back(index []affine, o fuse.Operand) []affine {
	for _, v := range slices.Backward(o.Views) {
		slice := func(i affine) affine { return i.times(v.Step).plusConstant(v.Start) }
		index = fuse.Source(v, index, slice, func(index []affine) []affine {
			whole := slices.Clone(index)
			for j, d := range v.To {
				if d > 1 {
					whole[j] = p.within(index[j], d)
				}
			}
			return p.unflatten(flat(whole, v.To), v.From)
		})
	}
	return index
}

// unflatten returns the index of an element of a shape from its place in memory.
func (p *places) unflatten(at affine, shape []int) []affine {
	index, limit := make([]affine, len(shape)), product(shape)
	for i := len(shape) - 1; i >= 0; i-- {
		if d := shape[i]; d != 1 {
			at, index[i] = p.divide(at, d, limit)
			limit /= d
		}
	}
	return index
}

// flat returns the place of an index in memory.
func flat(index []affine, shape []int) (at affine) {
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			at = at.plus(index[i].times(step))
		}
		step *= shape[i]
	}
	return at
}

// element returns the place of an operand's element, for the index of a node's domain with more dimensions.
func (p *places) element(index []affine, o fuse.Operand) affine {
	return p.place(p.source(index, o), o.Tensor)
}

// place returns the place of a tensor's element, as the program computes it.
func (p *places) place(index []affine, t *fuse.Tensor) affine { return p.expand(flat(index, t.Shape)) }

// source returns the index into the tensor of an operand.
func (p *places) source(index []affine, o fuse.Operand) []affine {
	shape := o.Shape()
	own := make([]affine, len(shape))
	for i, d := range shape {
		if d != 1 {
			own[i] = index[i+len(index)-len(shape)]
		}
	}
	return p.back(own, o)
}

// division returns the definition of a variable that is no axis.
func (p *places) division(name string) (division, bool) {
	for _, q := range p.divisions {
		if q.name == name {
			return q, true
		}
	}
	return division{}, false
}
