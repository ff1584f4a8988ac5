package fuse_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
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
	return m, nil
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

// unary and binary are the functions of floating-point numbers, integers those of integers.
var unary = map[string]func(x float64) float64{
	"Copy": func(x float64) float64 { return x }, "Neg": func(x float64) float64 { return -x },
	"Abs": math.Abs, "Exp": math.Exp, "Log": math.Log, "Tanh": math.Tanh, "Sqrt": math.Sqrt, "Erf": math.Erf,
	"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Cos": math.Cos, "Sin": math.Sin,
	"Rsqrt":      func(x float64) float64 { return 1 / math.Sqrt(x) },
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Sigmoid":    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Relu":       func(x float64) float64 { return max(x, 0) },
	"Softplus":   func(x float64) float64 { return math.Log1p(math.Exp(x)) },
	"Not":        func(x float64) float64 { return truth(x == 0) },
	"Sign":       func(x float64) float64 { return truth(x > 0) - truth(x < 0) },
	"Gelu":       func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	"GeluTanh":   func(x float64) float64 { return x / (1 + math.Exp(-math.Sqrt(8/math.Pi)*(x+0.044715*x*x*x))) },
}

var binary = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b }, "Div": func(a, b float64) float64 { return a / b },
	"Max": func(a, b float64) float64 { return max(a, b) }, "Min": func(a, b float64) float64 { return min(a, b) },
	"Pow": math.Pow, "Less": func(a, b float64) float64 { return truth(a < b) },
	"LessOrEqual":    func(a, b float64) float64 { return truth(a <= b) },
	"Greater":        func(a, b float64) float64 { return truth(a > b) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b) },
	"Equal":          func(a, b float64) float64 { return truth(a == b) },
	"And":            func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	"Or":             func(a, b float64) float64 { return truth(a != 0 || b != 0) },
	"Xor":            func(a, b float64) float64 { return truth((a != 0) != (b != 0)) },
}

var integers = map[string]func(a, b int64) int64{
	"Add": func(a, b int64) int64 { return a + b }, "Sub": func(a, b int64) int64 { return a - b },
	"Mul": func(a, b int64) int64 { return a * b }, "Div": func(a, b int64) int64 { return a / b },
	"Mod": func(a, b int64) int64 { return (a%b + b) % b },
	"Max": func(a, b int64) int64 { return max(a, b) }, "Min": func(a, b int64) int64 { return min(a, b) },
}

func apply(n *fuse.Node, operands []func([]int) number, index []int) (number, error) {
	kind, from := n.Out[0].Type, n.In[0].Tensor.Type
	x := make([]number, len(operands))
	for i, read := range operands {
		x[i] = read(index)
	}
	switch {
	case n.Op == "Where" && x[0].f != 0:
		return x[1], nil
	case n.Op == "Where":
		return x[2], nil
	case n.Op == "Copy":
		return x[0], nil
	case n.Op == "Cast" && isInteger(from) && isInteger(kind):
		return x[0], nil
	case n.Op == "Cast":
		return of(x[0].f+float64(x[0].i), kind), nil
	case n.Op == "LeakyRelu":
		return of(max(x[0].f, 0)+n.Alpha*min(x[0].f, 0), kind), nil
	case n.Op == "Elu":
		return of(max(x[0].f, 0)+n.Alpha*math.Expm1(min(x[0].f, 0)), kind), nil
	}
	if f := unary[n.Op]; f != nil && len(x) == 1 && !isInteger(from) {
		return of(f(x[0].f), kind), nil
	}
	if f := integers[n.Op]; f != nil && isInteger(from) {
		y := x[0].i
		for _, other := range x[1:] {
			y = f(y, other.i)
		}
		return number{i: y}, nil
	}
	if n.Op == "Neg" || n.Op == "Abs" {
		return number{i: int64(unary[n.Op](float64(x[0].i)))}, nil
	}
	f := binary[n.Op]
	if f == nil {
		return number{}, fmt.Errorf("no function for %s of %d operands of type %v", n.Op, len(x), from)
	}
	y := x[0].f + float64(x[0].i) // comparisons of integers, which are small
	for _, other := range x[1:] {
		y = f(y, other.f+float64(other.i))
	}
	return of(y, kind), nil
}
