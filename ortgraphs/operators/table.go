package operators

import "math"

var rows = []*Operator{
	arithmetic("Add", "%s + %s", 2, Counted, add, add),
	arithmetic("Sub", "%s - %s", 2, Counted, subtract, subtract),
	arithmetic("Mul", "%s * %s", 2, Counted, multiply, multiply),
	arithmetic("Div", "%s / %s", 2, Rounded, func(a, b float64) float64 { return a / b }, quotient),
	arithmetic("Mod", "remainder_of(%s, %s)", 2, Rounded, // of integers
		func(a, b float64) float64 { return float64(remainder(int64(a), int64(b))) }, remainder),
	arithmetic("Max", "max_of(%s, %s)", 0, Selected, larger, larger),
	arithmetic("Min", "min_of(%s, %s)", 0, Selected, smaller, smaller),
	{Name: "Pow", Inputs: 2, C: "powf(%s, %s)", DoubleC: "pow(%s, %s)", Of: fromLeft(math.Pow), Folds: true},

	condition("Less", "%s < %s", func(a, b float64) bool { return a < b }),
	condition("LessOrEqual", "%s <= %s", func(a, b float64) bool { return a <= b }),
	condition("Greater", "%s > %s", func(a, b float64) bool { return a > b }),
	condition("GreaterOrEqual", "%s >= %s", func(a, b float64) bool { return a >= b }),
	condition("Equal", "%s == %s", func(a, b float64) bool { return a == b }),
	condition("And", "%s && %s", func(a, b float64) bool { return a != 0 && b != 0 }),
	condition("Or", "%s || %s", func(a, b float64) bool { return a != 0 || b != 0 }),
	condition("Xor", "%s != %s", func(a, b float64) bool { return (a != 0) != (b != 0) }),
	{
		Name: "Not", Inputs: 1, Result: Boolean, IntegerC: "!%s", Folds: true,
		Of: func(x []float64) float64 { return truth(x[0] == 0) },
	},
	{
		Name: "Where", Inputs: 3, Result: OfSecond, IntegerC: "%s ? %s : %s", Exactness: Selected, Folds: true,
		Of: func(x []float64) float64 {
			if x[0] != 0 {
				return x[1]
			}
			return x[2]
		},
	},

	{Name: "Cast", Inputs: 1, Exactness: Converted}, // package cudac writes it, by both types
	{
		Name: "Copy", Inputs: 1, C: "%s", DoubleC: "%s", IntegerC: "%s", Of: identity[float64],
		Integers: identity[int64], Exactness: Selected, ONNX: []string{"Identity"},
	},
	{
		Name: "Neg", Inputs: 1, C: "-%s", DoubleC: "-%s", IntegerC: "-%s", Of: negate[float64],
		Integers: negate[int64], Exactness: Selected, Folds: true,
	},
	{
		Name: "Abs", Inputs: 1, C: "fabsf(%s)", DoubleC: "fabs(%s)", IntegerC: "magnitude_of(%s)",
		Of: magnitude[float64], Integers: magnitude[int64], Exactness: Selected, Folds: true,
	},
	{
		Name: "Relu", Inputs: 1, C: "relu_of(%s)", DoubleC: "relu_of(%s)", IntegerC: "relu_of(%s)",
		Of: positive[float64], Integers: positive[int64], Exactness: Selected,
	},
	{
		Name: "Sign", Inputs: 1, C: "sign_of(%s)", DoubleC: "sign_of(%s)", IntegerC: "sign_of(%s)",
		Exactness: Whole, Of: func(x []float64) float64 { return truth(x[0] > 0) - truth(x[0] < 0) },
	},
	{
		Name: "Floor", Inputs: 1, C: "floorf(%s)", DoubleC: "floor(%s)", Of: each(math.Floor), Exactness: Whole,
		Folds: true,
	},
	{Name: "Ceil", Inputs: 1, C: "ceilf(%s)", DoubleC: "ceil(%s)", Of: each(math.Ceil), Exactness: Whole, Folds: true},
	{Name: "Round", Inputs: 1, C: "rintf(%s)", DoubleC: "rint(%s)", Of: each(math.RoundToEven), Exactness: Whole},
	{Name: "Sqrt", Inputs: 1, C: "sqrtf(%s)", DoubleC: "sqrt(%s)", Of: each(math.Sqrt), Folds: true},
	{
		Name: "Reciprocal", Inputs: 1, C: "1.f / %s", DoubleC: "1.0 / %s", Folds: true,
		Of: each(func(x float64) float64 { return 1 / x }),
	},
	{
		Name: "Rsqrt", Inputs: 1, C: "rsqrtf(%s)", DoubleC: "1.0 / sqrt(%s)",
		Of: each(func(x float64) float64 { return 1 / math.Sqrt(x) }), ONNX: []string{"Sqrt", "Reciprocal"},
	},

	function("Exp", "expf(%s)", "exp(%s)", math.Exp),
	function("Log", "logf(%s)", "log(%s)", math.Log),
	function("Tanh", "tanh_of(%s)", "tanh(%s)", math.Tanh),
	function("Erf", "erff(%s)", "erf(%s)", math.Erf),
	function("Cos", "cosf(%s)", "cos(%s)", math.Cos),
	function("Sin", "sinf(%s)", "sin(%s)", math.Sin),
	function("Sigmoid", "sigmoid_of(%s)", "sigmoid_of(%s)", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	function("Softplus", "softplus_of(%s)", "softplus_of(%s)",
		func(x float64) float64 { return math.Log1p(math.Exp(x)) }),
	function("Gelu", "gelu_of(%s)", "gelu_of(%s)",
		func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }),
	{
		Name: "GeluTanh", Inputs: 1, C: "gelu_tanh_of(%s)", DoubleC: "gelu_tanh_of(%s)", ONNX: []string{"Gelu"},
		Attribute: text("approximate", "tanh"),
		Of: each(func(x float64) float64 {
			return x / (1 + math.Exp(-math.Sqrt(8/math.Pi)*(x+0.044715*x*x*x)))
		}),
	},
	{
		Name: "LeakyRelu", Inputs: 1, Alpha: 0.01, C: "%[1]s < 0.f ? %[1]s * %[2]s : %[1]s",
		DoubleC: "%[1]s < 0.0 ? %[1]s * %[2]s : %[1]s",
		Of:      func(x []float64) float64 { return max(x[0], 0) + x[1]*min(x[0], 0) },
	},
	{
		Name: "Elu", Inputs: 1, Alpha: 1, C: "%[1]s < 0.f ? %[2]s * expm1f(%[1]s) : %[1]s",
		DoubleC: "%[1]s < 0.0 ? %[2]s * expm1(%[1]s) : %[1]s",
		Of:      func(x []float64) float64 { return max(x[0], 0) + x[1]*math.Expm1(min(x[0], 0)) },
	},
}
