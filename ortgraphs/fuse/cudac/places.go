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
	// limits has the number of values of each variable, which begin at 0: the axes a0, a1, ... and those of parts.
	limits map[string]int
	// parts are variables that quotients and rests need, each after those that it uses.
	parts []part
	known map[string]int // parts by what they compute
}

// part defines a variable: a value itself, its quotient by divisor, or its rest.
type part struct {
	name    string
	value   affine
	divisor int // 0 for the value itself
	rest    bool
}

// guard says that an element is there if value is at least from and below to.
type guard struct {
	value    affine
	from, to int
}

func newPlaces(sizes []int) *places {
	p := &places{sizes: sizes, limits: map[string]int{}, known: map[string]int{}}
	for i, size := range sizes {
		p.limits[axisName(i)] = size
	}
	return p
}

func (p *places) clone() *places {
	return &places{sizes: p.sizes, limits: maps.Clone(p.limits), parts: slices.Clone(p.parts), known: maps.Clone(p.known)}
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

func (p *places) define(q part, limit int) affine {
	key := fmt.Sprintf("%s %d %t %d", q.value, q.divisor, q.rest, limit)
	i, ok := p.known[key]
	if !ok {
		i = len(p.parts)
		q.name = fmt.Sprintf("q%d", i)
		p.known[key] = i
		p.parts = append(p.parts, q)
		p.limits[q.name] = limit
	}
	return variable(p.parts[i].name, 1)
}

// divide returns e/k and e%k.
func (p *places) divide(e affine, k int) (quotient, rest affine, err error) {
	if k == 1 {
		return e, affine{}, nil
	}
	quotient, rest = e.dividedBy(k)
	if least, most := p.bounds(rest); least >= 0 && most < k {
		return quotient, rest, nil
	}
	least, most := p.bounds(e)
	if least < 0 {
		return affine{}, affine{}, unsupported("an index that may be negative is divided")
	}
	return p.define(part{value: e, divisor: k}, most/k+1), p.define(part{value: e, divisor: k, rest: true}, k), nil
}

// named returns a variable for a value that a guard limits to 0 up to limit.
func (p *places) named(e affine, limit int) affine {
	if least, most := p.bounds(e); least >= 0 && most < limit {
		return e
	}
	return p.define(part{value: e}, limit)
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
func (p *places) back(index []affine, o fuse.Operand) ([]affine, error) {
	for i := len(o.Views) - 1; i >= 0; i-- {
		v := o.Views[i]
		source := make([]affine, len(v.From))
		switch v.Op {
		case fuse.Transpose:
			for j, k := range v.Perm {
				source[k] = index[j]
			}
		case fuse.Expand:
			added := len(v.To) - len(v.From)
			for j, d := range v.From {
				if d != 1 {
					source[j] = index[j+added]
				}
			}
		case fuse.Slice:
			copy(source, index)
			source[v.Axis] = index[v.Axis].times(v.Step).plusConstant(v.Start)
		case fuse.Reshape:
			rest := flat(index, v.To)
			for j := len(v.From) - 1; j >= 0; j-- {
				if v.From[j] == 1 {
					continue
				}
				var err error
				if rest, source[j], err = p.divide(rest, v.From[j]); err != nil {
					return nil, err
				}
			}
		}
		index = source
	}
	return index, nil
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
func (p *places) element(index []affine, o fuse.Operand) (affine, error) {
	source, err := p.source(index, o)
	if err != nil {
		return affine{}, err
	}
	return flat(source, o.Tensor.Shape), nil
}

// source returns the index into the tensor of an operand.
func (p *places) source(index []affine, o fuse.Operand) ([]affine, error) {
	shape := o.Shape()
	own := make([]affine, len(shape))
	for i, d := range shape {
		if d != 1 {
			own[i] = index[i+len(index)-len(shape)]
		}
	}
	return p.back(own, o)
}

// part returns the definition of a variable that is no axis.
func (p *places) part(name string) (part, bool) {
	for _, q := range p.parts {
		if q.name == name {
			return q, true
		}
	}
	return part{}, false
}
