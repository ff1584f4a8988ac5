package fuse_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// number is an element of a tensor: i of an integer type, f of any other. The hashes of dropout need integers above
// 2^53.
type number struct {
	f float64
	i int64
}

// memory has the numbers of tensors.
type memory map[*fuse.Tensor][]number

// interpret runs the graph: region by region, where each region sees only the tensors that it says it reads, and leaves
// only those that it says it writes. given has the inputs, large constants, and the results of opaque nodes.
func interpret(g *fuse.Graph, regions []*fuse.Region, given memory) (memory, error) {
	m := memory{}
	for t, x := range given {
		m[t] = x
	}
	of := map[*fuse.Node]*fuse.Region{}
	for _, r := range regions {
		for _, n := range r.Nodes {
			of[n] = r
		}
	}
	done := map[*fuse.Region]bool{}
	var run func(n *fuse.Node) error
	fetch := func(nodes []*fuse.Node) error {
		for _, n := range nodes {
			for _, o := range n.In {
				if o.Tensor != nil && o.Tensor.From != nil && m[o.Tensor] == nil &&
					!slices.Contains(nodes, o.Tensor.From) {
					if err := run(o.Tensor.From); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	run = func(n *fuse.Node) error {
		r := of[n]
		if r == nil {
			if err := fetch([]*fuse.Node{n}); err != nil || m[n.Out[0]] != nil {
				return err
			}
			return compute(n, m)
		}
		if done[r] {
			return fmt.Errorf("%s is not an output of its region", n.Out[0].Name)
		}
		done[r] = true
		if err := fetch(r.Nodes); err != nil {
			return err
		}
		local := memory{}
		for _, t := range r.In {
			local[t] = m[t]
		}
		for _, n := range r.Nodes {
			if err := compute(n, local); err != nil {
				return err
			}
		}
		for _, t := range r.Out {
			m[t] = local[t]
		}
		return nil
	}
	for _, o := range g.Outputs {
		if o.Tensor.From != nil && m[o.Tensor] == nil {
			if err := run(o.Tensor.From); err != nil {
				return nil, err
			}
		}
	}
	return m, fetchAll(regions, fetch)
}

// fetchAll computes what recurrences read: their results are given.
func fetchAll(regions []*fuse.Region, fetch func(nodes []*fuse.Node) error) error {
	for _, r := range regions {
		if r.Nodes[0].Kind == fuse.Opaque {
			if err := fetch(r.Nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader returns a function that reads the element of an operand for an index into a shape that the operand is
// broadcast to.
func reader(o fuse.Operand, m memory) func(index []int) number {
	data := m[o.Tensor]
	if o.Tensor.Data != nil {
		data = encode(o.Tensor.Data, o.Tensor.Type)
	}
	element := fuse.Element(o)
	return func(index []int) number { return data[element(index)] }
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func isInteger(t shapes.Type) bool {
	switch t {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_BOOL:
		return false
	}
	return true
}

// encode returns numbers as a tensor of the type has them.
func encode(x []float64, t shapes.Type) []number {
	data := make([]number, len(x))
	for i, v := range x {
		data[i] = of(v, t)
	}
	return data
}

// of returns a number as the type stores it.
func of(x float64, t shapes.Type) number {
	switch t {
	case onnxpb.TensorProto_FLOAT:
		return number{f: float64(float32(x))}
	case onnxpb.TensorProto_BFLOAT16:
		bits := math.Float32bits(float32(x))
		return number{f: float64(math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff))}
	case onnxpb.TensorProto_DOUBLE:
		return number{f: x}
	case onnxpb.TensorProto_BOOL:
		return number{f: truth(x != 0)}
	}
	return number{i: int64(x)}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func compute(n *fuse.Node, m memory) error {
	out := n.Out[0]
	for _, o := range n.In {
		if o.Tensor.Data == nil && m[o.Tensor] == nil {
			return fmt.Errorf("%s reads %s, which is not in memory", out.Name, o.Tensor.Name)
		}
	}
	var x []func(index []int) number
	for _, o := range n.In {
		x = append(x, reader(o, m))
	}
	element := func(index []int) (number, error) { return apply(n, x, index) }
	switch n.Kind {
	case fuse.Opaque:
		return fmt.Errorf("no result is given for %s", n.Op)
	case fuse.Reduction:
		element = func(index []int) (number, error) { return reduce(n, x[0], index), nil }
	case fuse.Cumulation:
		m[out] = cumulate(n, x)
		return nil
	case fuse.Product:
		m[out] = multiply(n, x)
		return nil
	case fuse.Join:
		element = func(index []int) (number, error) { return join(n, x, index), nil }
	}
	y := make([]number, elements(out.Shape))
	index := make([]int, len(out.Shape))
	for i := range y {
		fuse.Unflatten(i, out.Shape, index)
		var err error
		if y[i], err = element(index); err != nil {
			return err
		}
	}
	m[out] = y
	return nil
}

func reduce(n *fuse.Node, x func([]int) number, index []int) number {
	shape, along := n.In[0].Shape(), slices.Clone(n.Out[0].Shape)
	for i := range along {
		along[i] = 1
	}
	for _, a := range n.Axes {
		along[a] = shape[a]
	}
	y := map[string]number{"max": {math.Inf(-1), math.MinInt64}, "min": {math.Inf(1), math.MaxInt64}}[n.Op]
	at := make([]int, len(shape))
	for i := range elements(along) {
		fuse.Unflatten(i, along, at)
		for i, d := range along {
			if d == 1 {
				at[i] = index[i]
			}
		}
		switch v := x(at); n.Op {
		case "sum":
			y = number{y.f + v.f, y.i + v.i}
		case "max":
			y = number{max(y.f, v.f), max(y.i, v.i)}
		case "min":
			y = number{min(y.f, v.f), min(y.i, v.i)}
		case fuse.Reach:
			if last := len(shape) - 1; v.f >= 0x1p-126 || v.f != v.f {
				y.i |= 1 << (at[last] / fuse.ReachWidth(shape[last]))
			}
		}
	}
	if isInteger(n.Out[0].Type) {
		return number{i: y.i}
	}
	return of(y.f, n.Out[0].Type)
}

// multiply returns the elements of a product of matrices. Every factor is read once: a read through views costs far
// more than a multiplication.
func multiply(n *fuse.Node, x []func([]int) number) []number {
	shape := n.Out[0].Shape
	rank := len(shape)
	rows, columns := shape[rank-2], shape[rank-1]
	factor := n.In[0].Shape()
	depth := factor[len(factor)-1]
	if n.Transposed[0] {
		depth = factor[len(factor)-2]
	}
	left := vectors(x[0], shape[:rank-2], rows, depth, n.Transposed[0])
	right := vectors(x[1], shape[:rank-2], columns, depth, !n.Transposed[1])
	y := make([]number, elements(shape))
	index := make([]int, rank)
	for i := range y {
		fuse.Unflatten(i, shape, index)
		sum := 0.0
		for _, added := range x[2:] { // a bias, a residual
			sum += added(index).f
		}
		row := i / columns
		column := row/rows*columns + i%columns
		y[i] = of(plus(sum, left[row*depth:][:depth], right[column*depth:][:depth]), n.Out[0].Type)
	}
	return y
}

// vectors returns the rows of matrices one after another, or their columns.
func vectors(x func([]int) number, matrices []int, count, length int, columns bool) []float64 {
	shape := append(slices.Clone(matrices), count, length)
	list := make([]float64, elements(shape))
	index := make([]int, len(shape))
	for i := range list {
		fuse.Unflatten(i, shape, index)
		if columns {
			index[len(index)-2], index[len(index)-1] = index[len(index)-1], index[len(index)-2]
		}
		list[i] = x(index).f
	}
	return list
}

// plus adds a dot product to a sum. It has most of a test's work and its slices are its own, so the race detector,
// which makes it ten times as slow, has nothing to find.
//
//go:norace
func plus(sum float64, a, b []float64) float64 {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func join(n *fuse.Node, x []func([]int) number, index []int) number {
	at := slices.Clone(index)
	if n.Op == "Pad" {
		for i, d := range n.In[0].Shape() {
			if at[i] -= n.Pads[i]; at[i] < 0 || at[i] >= d {
				return of(n.Fill, n.Out[0].Type)
			}
		}
		return x[0](at)
	}
	axis := n.Axes[0]
	if n.Op == "Windows" {
		w, size := n.Windows, n.In[0].Shape()[axis]
		at[w.Axis] = at[w.Axis]*w.Step + w.Start + at[axis]/size*w.Distance
		at[axis] %= size
		return x[0](at)
	}
	for i, o := range n.In {
		if size := o.Shape()[axis]; at[axis] >= size {
			at[axis] -= size
			continue
		}
		return x[i](at)
	}
	panic("the parts of a Concat are shorter than the whole")
}

// apply computes an element of an elementwise node.
func apply(n *fuse.Node, operands []func([]int) number, index []int) (number, error) {
	kind, from, o := n.Out[0].Type, n.In[0].Tensor.Type, operators.Table[n.Op]
	x := make([]number, len(operands))
	for i, read := range operands {
		x[i] = read(index)
	}
	switch {
	case n.Op == "Where" && x[0].f != 0:
		return x[1], nil
	case n.Op == "Where":
		return x[2], nil
	case n.Op == "Cast" && isInteger(from) && isInteger(kind):
		return x[0], nil
	case n.Op == "Cast":
		return of(x[0].f+float64(x[0].i), kind), nil
	case o == nil:
		return number{}, fmt.Errorf("no function for %s", n.Op)
	}
	if o.Integers != nil && isInteger(from) {
		var integers []int64
		for _, y := range x {
			integers = append(integers, y.i)
		}
		return number{i: o.Integers(integers)}, nil
	}
	var floats []float64
	for _, y := range x {
		floats = append(floats, y.f+float64(y.i)) // comparisons of integers, which are small
	}
	if o.Alpha != 0 {
		floats = append(floats, n.Alpha)
	}
	return of(o.Of(floats), kind), nil
}
