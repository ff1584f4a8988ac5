package fuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// convolved is a convolution along one dimension of x, whose last dimension are the channels, with both gradients, as
// the exporter writes it.
type convolved struct {
	kind                        onnxpb.TensorProto_DataType
	rows, time, width, channels int    // of x; width is 0 for three dimensions
	results                     int    // the channels of y
	taps, distance, first, rest int    // the windows begin at first, and leave rest positions at the end
	margin                      int    // zeros at both ends of time
	other                       string // what is different from a convolution that shares windows
}

// What a convolution may have that shares no windows.
const (
	strided    = "every second position"
	misplaced  = "a part in another place"
	incomplete = "a part is missing"
	summed     = "a sum of some parts is read"
	read       = "the windows are read"
	kept       = "the windows are an output"
	untouched  = "the product dW is an output"
	biasedW    = "a bias is added to dW"
	biasedX    = "a bias is added to dy W'"
)

// model returns its outputs y, dW and dx.
func (c convolved) model() *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("convolved")}}
	step := 1
	if c.other == strided {
		step = 2
	}
	positions := (c.time-c.first-c.rest-(c.taps-1)*c.distance-1)/step + 1
	shaped := func(time, channels int) []int {
		if c.width > 0 {
			return []int{c.rows, time, c.width, channels}
		}
		return []int{c.rows, time, channels}
	}
	x, y, columns := shaped(c.time, c.channels), shaped(positions, c.results), c.taps*c.channels
	last, count := len(x)-1, elements(y[:len(y)-1])
	w := []int{c.results, c.channels, c.taps}
	b.graph.Input = append(b.graph.Input, info("x", shaped(c.time-2*c.margin, c.channels)), info("w", w), info("e", y))
	cast := func(name string, kind onnxpb.TensorProto_DataType) string { return c.cast(b, name, kind) }
	input := b.add("Tanh", "x")
	if c.margin > 0 {
		pads := make([]int, 2*len(x))
		pads[1], pads[1+len(x)] = c.margin, c.margin
		input = b.add("Pad", input, b.numbers(pads...))
	}
	input = cast(input, c.kind)
	weights := b.add("Reshape", b.add("Transpose", cast("w", c.kind), list("perm", 0, 2, 1)),
		b.numbers(c.results, columns))
	var parts []string
	for i := range c.taps {
		start := c.first + i*c.distance
		parts = append(parts, b.add("Slice", input, b.numbers(start), b.numbers(start+(positions-1)*step+1),
			b.numbers(1), b.numbers(step)))
	}
	whole := b.add("Concat", append(anys(parts), attribute("axis", last))...)
	windows := b.add("Reshape", whole, b.numbers(count, columns))
	result := b.add("MatMul", windows, b.add("Transpose", weights, list("perm", 1, 0)))
	out := []string{b.add("Tanh", b.add("Reshape", cast(result, onnxpb.TensorProto_FLOAT), b.numbers(y...)))}

	dy := b.add("Reshape", cast(b.add("Mul", out[0], "e"), c.kind), b.numbers(count, c.results))
	gradient := b.add("MatMul", b.add("Transpose", dy, list("perm", 1, 0)), windows)
	gradient = c.biased(b, biasedW, gradient, columns)
	apart := b.add("Transpose", b.add("Reshape", gradient, b.numbers(c.results, c.taps, c.channels)),
		list("perm", 0, 2, 1))
	out = append(out, b.add("Neg", cast(apart, onnxpb.TensorProto_FLOAT)))

	moved := b.add("Reshape", c.biased(b, biasedX, b.add("MatMul", dy, weights), columns),
		b.numbers(shaped(positions, columns)...))
	sum, some := c.sum(b, moved, positions, last)
	if c.other == summed {
		out = append(out, b.add("Exp", c.cast(b, some, onnxpb.TensorProto_FLOAT)))
	}
	if c.margin > 0 {
		sum = b.add("Slice", sum, b.numbers(c.margin), b.numbers(c.time-c.margin), b.numbers(1))
	}
	out = append(out, b.add("Sub", cast(sum, onnxpb.TensorProto_FLOAT), "x"))
	switch c.other {
	case read:
		out = append(out, b.add("Exp", cast(whole, onnxpb.TensorProto_FLOAT)))
	case kept:
		out = append(out, whole)
	case untouched:
		out = append(out, gradient)
	}
	for _, name := range out {
		b.graph.Output = append(b.graph.Output, info(name, nil))
	}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

// sum adds the parts of dy W', each moved to its place. some is the sum of the first two.
func (c convolved) sum(b *builder, moved string, positions, last int) (sum, some string) {
	for i := range c.taps {
		if c.other == incomplete && i == c.taps/2 {
			continue
		}
		begin := i * c.channels
		part := c.cast(b, b.add("Slice", moved, b.numbers(begin), b.numbers(begin+c.channels), b.numbers(last)),
			onnxpb.TensorProto_FLOAT)
		pads := make([]int, 2*(last+1))
		pads[1] = c.first + i*c.distance
		if c.other == misplaced && i == 1 {
			pads[1]++
		}
		pads[last+2] = c.time - positions - pads[1]
		placed := c.cast(b, b.add("Pad", part, b.numbers(pads...)), c.kind)
		if sum != "" {
			placed = b.add("Add", sum, placed)
		}
		if sum = placed; i == 1 {
			some = sum
		}
	}
	return sum, some
}

// biased adds a bias in the graphs that have one there.
func (c convolved) biased(b *builder, other, product string, columns int) string {
	if c.other != other {
		return product
	}
	b.graph.Input = append(b.graph.Input, info("bias", []int{columns}))
	return b.add("Add", product, c.cast(b, "bias", c.kind))
}

// cast converts a tensor between f32 and the type of the products.
func (c convolved) cast(b *builder, name string, kind onnxpb.TensorProto_DataType) string {
	if c.kind == onnxpb.TensorProto_FLOAT {
		return name
	}
	return b.add("Cast", name, to(kind))
}

func anys(names []string) (list []any) {
	for _, name := range names {
		list = append(list, name)
	}
	return list
}

// shares reports whether the gradient of the weights is a product of x, without zeros around it, with windows of the
// other gradient.
func (c convolved) shares(g *fuse.Graph) bool {
	for _, n := range g.Nodes {
		if n.Kind != fuse.Product || n.Transposed != [2]bool{true, false} {
			continue
		}
		positions := c.time
		// windows of dy begin and end outside of it
		if c.margin <= min(c.first+(c.taps-1)*c.distance, c.rest+(c.taps-1)*c.distance) {
			positions -= 2 * c.margin
		}
		rows := c.rows * max(c.width, 1) * positions
		return slices.Equal(n.In[0].Shape(), []int{rows, c.channels}) &&
			slices.Equal(n.In[1].Shape(), []int{rows, c.taps * c.results})
	}
	return false
}

// check compares what the regions of a convolution compute with what ONNX Runtime does, and in bf16, for which it has
// no products on the CPU, with the graph without regions.
func (c convolved) check(t *testing.T, shared bool) {
	t.Helper()
	model := c.model()
	r, g, regions := partition(t, model, shapes.Sizes{})
	if got := c.shares(g); got != shared {
		t.Errorf("%+v: windows shared: %t", c, got)
	}
	if c.kind == onnxpb.TensorProto_FLOAT {
		compare(t, model, r, g, regions, batch(r, nil), 2e-6, 0)
		kernelsOf(t, model, r, g, regions)
		return
	}
	got, want := computed(t, g, regions), plainly(t, model)
	for i, o := range g.Outputs {
		var difference, norm float64
		for j, x := range got[o.Tensor] {
			difference, norm = math.Hypot(difference, x.f-want[i][j].f), math.Hypot(norm, want[i][j].f)
		}
		if !(difference <= 1e-2*norm) {
			t.Errorf("%+v: %s is %g of its norm away", c, o.Name, difference/norm)
		}
	}
}

// TestSharedWindows: both gradients of a convolution are those that ONNX Runtime computes, of any size.
func TestSharedWindows(t *testing.T) {
	for seed := range nightly.Of[uint64](6, 100) {
		random := rand.New(rand.NewPCG(5, seed))
		c := convolved{
			kind: onnxpb.TensorProto_FLOAT, rows: 1 + random.IntN(3), width: random.IntN(3),
			channels: 2 + random.IntN(4), taps: 2 + random.IntN(4), distance: 1 + random.IntN(3), first: random.IntN(3),
			rest: random.IntN(3),
		}
		c.time = c.first + c.rest + (c.taps-1)*c.distance + 2 + random.IntN(8)
		c.results = 1 + random.IntN(c.channels)
		c.margin = random.IntN(min(3, (c.time+1)/2))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c.check(t, true)
			c.kind = onnxpb.TensorProto_BFLOAT16
			c.check(t, true)
		})
	}
}

// TestUnsharedWindows: what is no gradient of a convolution, or needs its windows in any case, or costs more bytes, is
// left as it is.
func TestUnsharedWindows(t *testing.T) {
	c := convolved{kind: onnxpb.TensorProto_FLOAT, rows: 2, time: 14, channels: 4, results: 3, taps: 3, distance: 2}
	c.check(t, true)
	for _, other := range []string{strided, misplaced, incomplete, summed, read, kept, untouched} {
		t.Run(other, func(t *testing.T) {
			c := c
			c.other = other
			c.rest = 1
			c.check(t, false)
		})
	}
	c.results = c.channels + 1
	c.check(t, false)
	c = convolved{kind: onnxpb.TensorProto_BFLOAT16, rows: 2, time: 14, channels: 8, results: 8, taps: 3, distance: 1}
	c.check(t, true)
	for _, other := range []string{biasedW, biasedX} { // products with a bias have an operand more
		c.other = other
		c.check(t, false)
	}
}

// TestSharedByTwo: of two convolutions whose results are added, each has windows and weights of its own.
func TestSharedByTwo(t *testing.T) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("two")}}
	const time, channels, taps, positions = 9, 3, 3, 7
	b.graph.Input = append(b.graph.Input, info("x0", []int{1, time, channels}), info("x1", []int{1, time, channels}),
		info("w0", []int{channels, taps * channels}), info("w1", []int{channels, taps * channels}),
		info("e", []int{positions, channels}))
	dy := b.add("Tanh", "e")
	for i := range 2 {
		var parts []string
		for j := range taps {
			parts = append(parts,
				b.add("Slice", b.add("Tanh", fmt.Sprint("x", i)), b.numbers(j), b.numbers(j+positions), b.numbers(1)))
		}
		windows := b.add("Reshape", b.add("Concat", append(anys(parts), attribute("axis", 2))...),
			b.numbers(positions, taps*channels))
		moved := b.add("Reshape", b.add("MatMul", dy, fmt.Sprint("w", i)), b.numbers(1, positions, taps*channels))
		sum := ""
		for j := range taps {
			part := b.add("Pad", b.add("Slice", moved, b.numbers(j*channels), b.numbers((j+1)*channels), b.numbers(2)),
				b.numbers(0, j, 0, 0, time-positions-j, 0))
			if sum != "" {
				part = b.add("Add", sum, part)
			}
			sum = part
		}
		dw := b.add("Neg", b.add("MatMul", b.add("Transpose", dy, list("perm", 1, 0)), windows))
		b.graph.Output = append(b.graph.Output, info(b.add("Neg", sum), nil), info(dw, nil))
	}
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 2e-6, 0)
	if n := slices.IndexFunc(g.Nodes, func(n *fuse.Node) bool {
		return n.Op == "Windows" && n.In[0].Tensor.From != nil && n.In[0].Tensor.From.Op == "Tanh"
	}); n >= 0 {
		t.Errorf("%s are windows of an input", g.Nodes[n].Out[0].Name)
	}
}
