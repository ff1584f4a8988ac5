package cudac

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// The functions below are CUDA's, or those of prelude.cuh.
var (
	binary = map[string]string{
		"Add": "%s + %s", "Sub": "%s - %s", "Mul": "%s * %s", "Div": "%s / %s", "Less": "%s < %s",
		"LessOrEqual": "%s <= %s", "Greater": "%s > %s", "GreaterOrEqual": "%s >= %s", "Equal": "%s == %s",
		"And": "%s && %s", "Or": "%s || %s", "Xor": "%s != %s", "Mod": "remainder_of(%s, %s)",
	}
	unary = map[string]string{ // of f32
		"Neg": "-%s", "Abs": "fabsf(%s)", "Exp": "expf(%s)", "Log": "logf(%s)", "Tanh": "tanh_of(%s)",
		"Sqrt": "sqrtf(%s)", "Reciprocal": "1.f / %s", "Rsqrt": "rsqrtf(%s)", "Erf": "erff(%s)",
		"Sigmoid": "sigmoid_of(%s)", "Relu": "relu_of(%s)", "Softplus": "softplus_of(%s)", "Sign": "sign_of(%s)",
		"Floor": "floorf(%s)", "Ceil": "ceilf(%s)", "Round": "rintf(%s)", "Cos": "cosf(%s)", "Sin": "sinf(%s)",
		"Gelu": "gelu_of(%s)", "GeluTanh": "gelu_tanh_of(%s)",
	}
	unaryOfIntegers = map[string]string{
		"Neg": "-%s", "Abs": "magnitude_of(%s)", "Sign": "sign_of(%s)", "Relu": "relu_of(%s)",
	}
)

// exact lists the operators whose result needs no rounding to bf16 if the operands need none.
var exact = []string{"Copy", "Where", "Max", "Min", "Neg", "Abs", "Relu", "Sign", "Floor", "Ceil", "Round"}

// expression is what an elementwise node computes, in C. bf16 is computed in f32, and rounded after each operation.
func expression(n *fuse.Node, x []string) (string, error) {
	code, err := function(n, x)
	if err == nil && rounds(n) {
		code = "rounded(" + code + ")"
	}
	return code, err
}

// rounds reports whether the result of an elementwise node is rounded to bf16.
func rounds(n *fuse.Node) bool { return isShort(n.Out[0].Type) && !slices.Contains(exact, n.Op) }

func function(n *fuse.Node, x []string) (string, error) {
	from, to := n.In[0].Tensor.Type, n.Out[0].Type
	switch n.Op {
	case "Copy":
		return x[0], nil
	case "Cast":
		return cast(x[0], n), nil
	case "Where":
		return fmt.Sprintf("%s ? %s : %s", x[0], x[1], x[2]), nil
	case "Not":
		return "!" + x[0], nil
	case "Max", "Min":
		code := x[0]
		for _, other := range x[1:] {
			code = fmt.Sprintf("%s_of(%s, %s)", map[string]string{"Max": "max", "Min": "min"}[n.Op], code, other)
		}
		return code, nil
	case "Mod":
		if n.Residue() {
			return fmt.Sprintf("residue_of<%.0f>(%s)", n.In[1].Tensor.Data[0], x[0]), nil
		}
	case "LeakyRelu":
		return fmt.Sprintf("%s < 0.f ? %s * %s : %s", x[0], x[0], literal(n.Alpha, onnxpb.TensorProto_FLOAT), x[0]), nil
	case "Elu":
		return fmt.Sprintf("%s < 0.f ? %s * expm1f(%s) : %s", x[0], literal(n.Alpha, onnxpb.TensorProto_FLOAT), x[0],
				x[0]),
			nil
	case "Pow":
		if isFloat(from) && isFloat(to) {
			return power(n, x), nil
		}
	}
	if pattern, ok := binary[n.Op]; ok && len(x) == 2 {
		return fmt.Sprintf(pattern, x[0], x[1]), nil
	}
	functions := unary
	if !isFloat(from) {
		functions = unaryOfIntegers
	}
	if pattern, ok := functions[n.Op]; ok && len(x) == 1 {
		return fmt.Sprintf(pattern, x[0]), nil
	}
	return "", unsupported("%s of elements of type %s", n.Op, from)
}

func cast(x string, n *fuse.Node) string {
	to := n.Out[0].Type
	if to == onnxpb.TensorProto_BOOL {
		return x + " != 0"
	}
	if isFloat(to) && n.In[0].Tensor.Type == onnxpb.TensorProto_BOOL {
		return x + " ? 1.f : 0.f" // the compiler folds further operations with constants into these
	}
	register, _ := held(to)
	return fmt.Sprintf("(%s)%s", register, x)
}

// power avoids the general function for the usual exponents.
func power(n *fuse.Node, x []string) string {
	exponent := math.NaN()
	if t := n.In[1].Tensor; t.Constant && len(t.Data) == 1 {
		exponent = t.Data[0]
	}
	switch exponent {
	case 1:
		return x[0]
	case 2:
		return fmt.Sprintf("%s * %s", x[0], x[0])
	case 3:
		return fmt.Sprintf("%s * %s * %s", x[0], x[0], x[0])
	case 0.5:
		return fmt.Sprintf("sqrtf(%s)", x[0])
	case -0.5:
		return fmt.Sprintf("rsqrtf(%s)", x[0])
	case -1:
		return fmt.Sprintf("1.f / %s", x[0])
	}
	return fmt.Sprintf("powf(%s, %s)", x[0], x[1])
}
