package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// depthwise is a depthwise convolution of x [rows, channels, sizes], with its gradients, as the exporter writes it. All
// lists are of the dimensions along which it runs.
type depthwise struct {
	short                                  bool // x and its gradient are bf16
	last                                   bool // in memory, the channels are the last dimension
	same                                   bool // all channels have one filter
	rows, channels                         int
	sizes, taps, distances, before, behind []int
}

// whole is the size with the zeros around it, positions that of the result.
func (d depthwise) whole(a int) int     { return d.before[a] + d.sizes[a] + d.behind[a] }
func (d depthwise) positions(a int) int { return d.whole(a) - (d.taps[a]-1)*d.distances[a] }

// apart reports whether each element of the gradient of x is one product: then that is a Concat, and no sum.
func (d depthwise) apart() bool {
	return !d.short && len(d.sizes) == 1 && d.positions(0) == d.distances[0]
}

// model has the outputs y, the gradient of the weights and that of x.
func (d depthwise) model() *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("depthwise")}}
	x, y, order := []int{d.rows, d.channels}, []int{d.rows, d.channels}, []int{0}
	w, spread := []int{d.channels, 1}, []int{d.channels}
	for a, n := range d.sizes {
		x, y, w = append(x, n), append(y, d.positions(a)), append(w, d.taps[a])
		order, spread = append(order, a+2), append(spread, 1)
	}
	back := append([]int{0, len(x) - 1}, order[1:]...)
	for i := range back[2:] {
		back[2+i]--
	}
	order = append(order, 1)
	if d.same {
		w[0] = 1
	}
	given := func(name string, shape []int) string {
		if !d.last {
			b.graph.Input = append(b.graph.Input, info(name, shape))
			return b.add("Tanh", name)
		}
		b.graph.Input = append(b.graph.Input, info(name, permutedList(shape, order)))
		return b.add("Transpose", b.add("Tanh", name), list("perm", back...))
	}
	in, e := given("x", x), given("e", y)
	b.graph.Input = append(b.graph.Input, info("w", w), info("bias", []int{d.channels}))
	if d.short {
		in = b.add("Cast", b.add("Cast", in, to(short)), to(f32))
	}
	for a := range d.sizes {
		in = d.padded(b, in, a, d.before[a], d.behind[a])
	}
	weights := b.add("Reshape", "w", b.numbers(append([]int{w[0]}, w[2:]...)...))
	sum, _ := d.part(b, in, weights, 0)
	sum = b.add("Add", sum, b.add("Reshape", "bias", b.numbers(spread...)))
	dy := b.add("Mul", b.add("Tanh", sum), e)
	dw := ""
	if !d.same {
		dw = d.gradient(b, dy, in, 0)
	}
	dx := d.back(b, dy, weights, 0)
	for a, n := range d.sizes {
		dx = b.add("Slice", dx, b.numbers(d.before[a]), b.numbers(d.before[a]+n), b.numbers(a+2))
	}
	if d.short {
		dx = b.add("Cast", dx, to(f32))
	}
	own := "x"
	if d.last {
		own = b.add("Transpose", "x", list("perm", back...))
	}
	out := []string{b.add("Sigmoid", sum), b.add("Mul", dx, own)}
	if dw != "" {
		out = append(out, dw)
	}
	return b.outputs(out...)
}

func permutedList(list, perm []int) (out []int) {
	for _, p := range perm {
		out = append(out, list[p])
	}
	return out
}

// padded has zeros along an axis.
func (d depthwise) padded(b *builder, x string, a, before, behind int) string {
	rank := 2 + len(d.sizes)
	pads := make([]int, 2*rank)
	pads[2+a], pads[rank+2+a] = before, behind
	return b.add("Pad", x, b.numbers(pads...))
}

func (d depthwise) slice(b *builder, x string, a, tap int) string {
	start := tap * d.distances[a]
	return b.add("Slice", x, b.numbers(start), b.numbers(start+d.positions(a)), b.numbers(a+2))
}

// weight is that of the taps from an axis on.
func (d depthwise) weight(b *builder, weights string, tap int) string {
	return b.add("Squeeze", b.add("Slice", weights, b.numbers(tap), b.numbers(tap+1), b.numbers(1)), b.numbers(1))
}

func (d depthwise) numbersOf(b *builder, weights string) string {
	shape := []int{-1}
	for range d.sizes {
		shape = append(shape, 1)
	}
	return b.add("Reshape", weights, b.numbers(shape...))
}

// part is the sum of the taps from an axis on.
func (d depthwise) part(b *builder, x, weights string, a int) (sum string, first bool) {
	if a == len(d.sizes) {
		return b.add("Mul", d.numbersOf(b, weights), x), true
	}
	for tap := range d.taps[a] {
		one, _ := d.part(b, d.slice(b, x, a, tap), d.weight(b, weights, tap), a+1)
		if sum != "" {
			one = b.add("Add", sum, one)
		}
		sum = one
	}
	return sum, false
}

// back is the gradient of x, with zeros around it.
func (d depthwise) back(b *builder, dy, weights string, a int) (sum string) {
	if a == len(d.sizes) {
		return b.add("Mul", dy, d.numbersOf(b, weights))
	}
	for tap := d.taps[a] - 1; tap >= 0; tap-- {
		one := d.back(b, dy, d.weight(b, weights, tap), a+1)
		if d.short && a+1 < len(d.sizes) {
			one = b.add("Cast", one, to(f32))
		}
		start := tap * d.distances[a]
		one = d.padded(b, one, a, start, d.whole(a)-d.positions(a)-start)
		if d.short {
			one = b.add("Cast", one, to(short))
		}
		if sum != "" {
			one = b.add("Add", sum, one)
		}
		sum = one
	}
	return sum
}

// gradient is that of the weights of the taps from an axis on.
func (d depthwise) gradient(b *builder, dy, x string, a int) string {
	if a == len(d.sizes) {
		axes := []int{0}
		for i := range d.sizes {
			axes = append(axes, 2+i)
		}
		sum := b.add("ReduceSum", b.add("Mul", dy, x), b.numbers(axes...))
		shape := []int{d.channels}
		for range d.sizes {
			shape = append(shape, 1)
		}
		return b.add("Reshape", sum, b.numbers(shape...))
	}
	var parts []string
	for tap := range d.taps[a] {
		parts = append(parts, d.gradient(b, dy, d.slice(b, x, a, tap), a+1))
	}
	return b.add("Concat", append(anys(parts), attribute("axis", 1+a))...)
}

// depthwiseForms are sizes that are multiples of nothing, one row, fewer positions than taps, and distances.
func depthwiseForms() (forms []depthwise) {
	one := func(rows, channels, size, taps, distance, before, behind int) depthwise {
		return depthwise{rows: rows, channels: channels, sizes: []int{size}, taps: []int{taps},
			distances: []int{distance}, before: []int{before}, behind: []int{behind}}
	}
	forms = []depthwise{
		one(3, 70, 45, 5, 1, 2, 2), one(1, 9, 7, 11, 1, 5, 5), one(2, 66, 19, 31, 1, 30, 0), one(2, 12, 37, 3, 8, 8, 8),
		one(1, 10, 5, 3, 7, 7, 7), one(2, 8, 90, 75, 1, 37, 37), one(4, 16, 33, 4, 2, 0, 0),
		one(2, 130, 150, 17, 1, 8, 8),
		{rows: 2, channels: 10, sizes: []int{6, 9}, taps: []int{3, 3}, distances: []int{1, 1}, before: []int{1, 1},
			behind: []int{1, 1}},
		{rows: 1, channels: 34, sizes: []int{11, 13}, taps: []int{3, 5}, distances: []int{2, 1}, before: []int{2, 0},
			behind: []int{2, 4}},
		{rows: 2, channels: 12, sizes: []int{10, 8}, taps: []int{9, 3}, distances: []int{1, 2}, before: []int{4, 2},
			behind: []int{4, 2}},
	}
	same := one(2, 20, 40, 12, 1, 6, 5)
	same.same = true
	forms = append(forms, same)
	random := rand.New(rand.NewPCG(1, 2))
	for range nightly.Of(4, 40) {
		taps, distance := 3+random.IntN(30), 1+random.IntN(3)
		reach := (taps - 1) * distance
		before := random.IntN(reach + 1)
		forms = append(forms, one(1+random.IntN(3), 8+random.IntN(140), 1+random.IntN(60), taps, distance, before,
			reach-before))
	}
	return append(forms, one(1, 9, 2, 3, 2, 0, 4)) // all taps but the first have nothing but zeros
}

// depthwise adds the kernels of depthwise convolutions, and returns their number.
func (k *kernels) depthwise(t *testing.T, d depthwise) {
	t.Helper()
	model := d.model()
	r, g, regions := partition(t, model, shapes.Sizes{})
	var m memory
	if d.short { // ONNX Runtime does not add numbers in bf16 on the CPU
		var err error
		m, err = interpret(g, regions, givenBatch(g, batch(r, nil)))
		must(t, err)
	} else {
		m, _ = results(t, model, r, g, regions, batch(r, nil))
	}
	count := map[string]int{}
	for _, r := range regions {
		if w, ok := r.Work.(*fuse.Depthwise); ok {
			count[fmt.Sprint(w.OfWeights)]++
			if !w.OfWeights && len(w.Tail) < 2 {
				t.Errorf("%+v: nothing is computed from the sum of the taps: %s", d, r.Ops())
			}
		}
		if len(d.sizes) == 1 && !d.apart() && strings.Contains(r.Ops(), "Concat") {
			t.Errorf("%+v: gradients of weights are joined by %s", d, r.Ops())
		}
	}
	want := map[string]int{"false": 2, "true": 1}
	if d.same {
		delete(want, "true")
	}
	if d.apart() {
		want["false"] = 1
	}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("%+v: regions of depthwise convolutions, of weights or not: %v, want %v", d, count, want)
	}
	k.add(t, regions, m)
}

// allDepthwise adds those of all forms.
func (k *kernels) allDepthwise(t *testing.T, short bool) {
	t.Helper()
	for i, d := range depthwiseForms() {
		d.short, d.last = short, i%2 == 0
		k.depthwise(t, d)
	}
}

// TestDepthwise: depthwise convolutions and the gradients of what they convolve and of their weights are found, and
// their kernels compute what ONNX Runtime computes tap by tap.
func TestDepthwise(t *testing.T) {
	for name, short := range map[string]bool{"f32": false, "bf16": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k kernels
			k.allDepthwise(t, short)
			k.complete(t, 40)
			within := 2e-6
			if short {
				within = 1e-2
			}
			k.check(t, &emulation{options: cudactest.Contracted()}, within)
		})
	}
}

// TestDepthwiseThenCumSum: what adds up to each element along the positions is a kernel of its own behind a depthwise
// convolution.
func TestDepthwiseThenCumSum(t *testing.T) {
	d := depthwise{
		rows: 2, channels: 16, sizes: []int{12}, taps: []int{7}, distances: []int{1}, before: []int{3},
		behind: []int{3},
	}
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("depthwise")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{2, 16, 12}), info("w", []int{16, 7}))
	sum, _ := d.part(b, d.padded(b, b.add("Tanh", "x"), 0, 3, 3), "w", 0)
	model := b.outputs(b.add("CumSum", sum, b.add("Squeeze", b.numbers(2))))
	rewritten(t, model)
	l, err := fuse.NewLedger(model, nil, fused.Kernels)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Regions {
		if len(r.Plain) > 0 {
			t.Errorf("%s: %v", r.Ops, r.Plain)
		}
	}
}

// TestDepthwiseAfterDepthwise: both of two convolutions with nothing between them have a kernel, and neither is
// computed twice.
func TestDepthwiseAfterDepthwise(t *testing.T) {
	d := depthwise{
		rows: 2, channels: 16, sizes: []int{12}, taps: []int{7}, distances: []int{1}, before: []int{3},
		behind: []int{3},
	}
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("depthwise")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{2, 16, 12}), info("w", []int{16, 7}))
	x := b.add("Tanh", "x")
	for range 2 {
		x, _ = d.part(b, d.padded(b, x, 0, 3, 3), "w", 0)
	}
	model := b.outputs(b.add("Exp", x))
	rewritten(t, model)
	_, _, regions := partition(t, model, shapes.Sizes{})
	count, others := 0, 0
	for _, r := range regions {
		if _, ok := r.Work.(*fuse.Depthwise); ok {
			count++
		} else if strings.Contains(r.Ops(), "Mul") {
			others++
		}
	}
	if count != 2 || others > 0 {
		t.Errorf("%d kernels, want 2; %d regions with taps, want none", count, others)
	}
}
