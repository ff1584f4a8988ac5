package fuse_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// ofEach makes up a graph of operators: each of numbers, and of integers or booleans as far as it has C for them.
func ofEach(list []*operators.Operator) *onnxpb.ModelProto {
	b := newForm()
	positive, less, more := b.add("Exp", "x"), b.add("Less", "x", "y"), b.add("Less", "m", "y")
	whole := b.whole("x", i64)
	divisor := b.add("Add", b.add("Abs", b.whole("y", i64)), b.numbers(1))
	var out []string
	add := func(o *operators.Operator, operands ...string) {
		if o.Inputs > 0 {
			operands = operands[:o.Inputs]
		}
		var in []any
		for _, x := range operands {
			in = append(in, x)
		}
		out = append(out, b.add("Cast", b.add(o.Name, in...), to(f32)))
	}
	for _, o := range list {
		if len(o.ONNX) > 0 || o.Of == nil {
			continue
		}
		switch o.Name {
		case "Log", "Sqrt", "Reciprocal", "Pow":
			add(o, positive, "y")
		case "And", "Or", "Xor", "Not":
			add(o, less, more)
		case "Where":
			add(o, less, "y", "m")
			add(o, more, divisor, whole)
		case "Mod":
			add(o, whole, divisor)
		case "Relu":
			add(o, "x") // ONNX Runtime has none of i64
		default:
			add(o, "x", "y", "m")
			if o.IntegerC != "" {
				add(o, whole, divisor, b.numbers(2))
			}
		}
	}
	return b.outputs(out...)
}

// TestOperators: the function of each row of the table, and its C, compute what ONNX Runtime does.
func TestOperators(t *testing.T) {
	checkOperators(t, slices.SortedFunc(maps.Values(operators.Table),
		func(a, b *operators.Operator) int { return cmp.Compare(a.Name, b.Name) }))
}

// TestNewOperator: a row is all that an operator needs.
func TestNewOperator(t *testing.T) {
	softsign := &operators.Operator{
		Name: "Softsign", Inputs: 1, C: "%[1]s / (1.f + fabsf(%[1]s))",
		Of: func(x []float64) float64 { return x[0] / (1 + math.Abs(x[0])) },
	}
	operators.Table[softsign.Name] = softsign
	defer delete(operators.Table, softsign.Name)
	checkOperators(t, []*operators.Operator{softsign})
}

func checkOperators(t *testing.T, list []*operators.Operator) {
	t.Helper()
	model := ofEach(list)
	r, g, regions := partition(t, model, shapes.Sizes{})
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 0)
	var k kernels
	k.model(t, model, newForm().NormFloat64)
	k.complete(t, 1)
	k.check(t, &emulation{}, 1e-5)
}
