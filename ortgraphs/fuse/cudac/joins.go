package cudac

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// join adds a Concat or a Pad: a read with guards for each operand.
func (b *body) join(n *fuse.Node) error {
	v, err := b.joined(n, n, b.places.index(b.loops.Of(n.Out[0])), nil)
	if err == nil {
		b.define(n, v.vector, v.code)
	}
	return err
}

// inline computes a node where a reader needs its element with this index. Where a guard says that there is none, the
// value may be any.
func (b *body) inline(reader, n *fuse.Node, index []affine, guards []guard) (value, error) {
	register, ok := held(n.Out[0].Type)
	if !ok {
		return value{}, unsupported("its elements are of type %s", n.Out[0].Type)
	}
	var v value
	var err error
	if n.Kind == fuse.Join {
		v, err = b.joined(reader, n, index, guards)
	} else {
		var operands []string
		for _, o := range n.In {
			x, err := b.read(reader, o, index, guards)
			if err != nil {
				return value{}, err
			}
			operands = append(operands, x.code)
			v.vector = v.vector || x.vector
		}
		v.code, err = expression(n, operands)
	}
	if err != nil {
		return value{}, err
	}
	begins, name := b.begins[reader], b.name()
	if v.vector {
		return value{b.assign(begins, begins, register, name, v.code), true}, nil
	}
	b.phases[begins].row = append(b.phases[begins].row, fmt.Sprintf("const %s %s = %s;", register, name, v.code))
	return value{code: name}, nil
}

// joined is the element of a Concat or a Pad with this index.
func (b *body) joined(reader, n *fuse.Node, whole []affine, guards []guard) (value, error) {
	switch n.Op {
	case "Pad":
		return b.piece(reader, n, n.In[0], whole, n.Pads, literal(n.Fill, n.Out[0].Type), guards)
	case "Windows":
		return b.window(reader, n, whole, guards)
	}
	axis := n.Axes[0]
	along := b.places.expand(whole[axis])
	all, start := value{vector: b.varies(along)}, 0
	for i, o := range n.In {
		before := make([]int, len(whole))
		before[axis] = start
		v, err := b.piece(reader, n, o, whole, before, "0", guards)
		if err != nil {
			return value{}, err
		}
		start += o.Shape()[axis]
		all.vector = all.vector || v.vector
		if i == len(n.In)-1 {
			all.code = "(" + all.code + v.code + ")"
			break
		}
		all.code += fmt.Sprintf("%s < %d ? %s : ", along, start, v.code)
	}
	return all, nil
}

// window is the element of a Concat of windows: its number is a variable, so all of them are one read.
func (b *body) window(reader, n *fuse.Node, whole []affine, guards []guard) (value, error) {
	w, axis := n.Windows, n.Axes[0]
	number, rest := b.places.divide(whole[axis], n.In[0].Shape()[axis], n.Out[0].Shape[axis])
	index := slices.Clone(whole)
	index[axis] = rest
	index[w.Axis] = whole[w.Axis].times(w.Step).plus(number.times(w.Distance)).plusConstant(w.Start)
	return b.read(reader, n.In[0], index, guards)
}

// piece reads an operand that is a piece of the node's result, and begins after so many elements of each dimension.
// Elsewhere it is fill.
func (b *body) piece(
	reader, n *fuse.Node, o fuse.Operand, whole []affine, before []int, fill string, outer []guard,
) (value, error) {
	shape := o.Shape()
	index := slices.Clone(whole)
	var own []guard
	for i, d := range shape {
		if d == n.Out[0].Shape[i] {
			continue
		}
		own = append(own, guard{b.places.expand(whole[i]), before[i], before[i] + d})
		index[i] = whole[i].plusConstant(-before[i])
		if d == 1 {
			index[i] = affine{}
		}
	}
	source := b.places.back(index, o)
	guards := slices.Concat(outer, own)
	from := o.Tensor.From
	if from == nil || !from.Inline {
		return b.load(reader, o.Tensor, b.places.place(source, o.Tensor), guards, fill)
	}
	v, err := b.inline(reader, from, source, guards)
	if err != nil || len(own) == 0 {
		return v, err
	}
	for _, g := range own {
		v.vector = v.vector || b.varies(g.value)
	}
	v.code = fmt.Sprintf("(%s ? %s : %s)", conditions(own), v.code, fill)
	return v, nil
}
