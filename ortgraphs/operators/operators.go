// Package operators is the table of the elementwise operators that regions compute: all that shapes, fuse, cudac and
// their tests know of one is its row.
package operators

import (
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Operator computes each element of its result from one element of each operand. One with the attribute alpha has that
// as a last operand of its functions.
type Operator struct {
	Name string
	// Inputs is the number of operands. 0 stands for any number, which are combined two by two from the left.
	Inputs int
	Result Result
	// Alpha is the default of the attribute alpha; 0 means that there is none.
	Alpha float64
	// C, DoubleC and IntegerC are the C expressions of numbers in f32, of numbers in f64, and of integers or booleans,
	// with functions of CUDA and of prelude.cuh; "" means that there is none.
	C, DoubleC, IntegerC string
	// Of is the function. Integers is that of integers which are larger than an f64 can have, if it differs from Of.
	Of       func(x []float64) float64
	Integers func(x []int64) int64
	Exactness
	// Folds says that graphs compute sizes with it, so it is computed in advance if its operands are known.
	Folds bool
	// ONNX has the operators that compute it, one after another, if it is none of ONNX itself. Attribute is that of the
	// last one.
	ONNX      []string
	Attribute *onnxpb.AttributeProto
}

// Result is the element type of a result.
type Result int

// The result has the type of the first operand, or of the second one, or is a boolean.
const (
	OfFirst Result = iota
	OfSecond
	Boolean
)

// Exactness says what an operator does to the digits of numbers.
type Exactness int

const (
	// Rounded is the exact result after a rounding.
	Rounded Exactness = iota
	// Counted is rounded, but what it computes of integers in f32 are integers.
	Counted
	// Converted is rounded to another type, in which integers stay integers.
	Converted
	// Whole has no more digits than the operands. What it computes of integers are integers.
	Whole
	// Selected is one of the operands, or its negative.
	Selected
)

// Exact reports whether a result needs no rounding to bf16 if the operands need none.
func (e Exactness) Exact() bool { return e >= Whole }

// Table has the operators by their names.
var Table = map[string]*Operator{}

func init() {
	for _, o := range rows {
		Table[o.Name] = o
	}
}

// function is an operator of one number.
func function(name, c, double string, of func(x float64) float64) *Operator {
	return &Operator{Name: name, Inputs: 1, C: c, DoubleC: double, Of: each(of)}
}

func each(of func(x float64) float64) func([]float64) float64 {
	return func(x []float64) float64 { return of(x[0]) }
}

// arithmetic is an operator of two numbers of any type, or of any number of them.
func arithmetic(
	name, c string, inputs int, e Exactness, of func(a, b float64) float64, integers func(a, b int64) int64,
) *Operator {
	return &Operator{
		Name: name, Inputs: inputs, C: c, DoubleC: c, IntegerC: c, Of: fromLeft(of), Integers: fromLeft(integers),
		Exactness: e, Folds: true,
	}
}

// condition is an operator of two operands of any type whose result is a boolean.
func condition(name, c string, of func(a, b float64) bool) *Operator {
	return &Operator{
		Name: name, Inputs: 2, Result: Boolean, C: c, DoubleC: c, IntegerC: c, Folds: true,
		Of: func(x []float64) float64 { return truth(of(x[0], x[1])) },
	}
}

func fromLeft[T any](f func(a, b T) T) func([]T) T {
	return func(x []T) T {
		y := x[0]
		for _, other := range x[1:] {
			y = f(y, other)
		}
		return y
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func identity[T any](x []T) T { return x[0] }

type number interface{ float64 | int64 }

func add[T number](a, b T) T      { return a + b }
func subtract[T number](a, b T) T { return a - b }
func multiply[T number](a, b T) T { return a * b }
func larger[T number](a, b T) T   { return max(a, b) }
func smaller[T number](a, b T) T  { return min(a, b) }
func negate[T number](x []T) T    { return -x[0] }
func magnitude[T number](x []T) T { return max(x[0], -x[0]) }
func positive[T number](x []T) T  { return max(x[0], 0) }

// quotient is rounded towards zero.
func quotient(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// remainder has the sign of the divisor.
func remainder(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return (a%b + b) % b
}

func text(name, value string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(value)}
}
