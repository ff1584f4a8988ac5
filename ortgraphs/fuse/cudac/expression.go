package cudac

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// expression is what an elementwise node computes, in C. bf16 is computed in f32, and rounded after each operation.
func expression(n *fuse.Node, x []string) (string, error) {
	code, err := function(n, x)
	if err == nil && rounds(n) {
		code = "rounded(" + code + ")"
	}
	return code, err
}

// rounds reports whether the result of an elementwise node is rounded to bf16.
func rounds(n *fuse.Node) bool { return isShort(n.Out[0].Type) && !operators.Table[n.Op].Exact() }

func function(n *fuse.Node, x []string) (string, error) {
	o, from := operators.Table[n.Op], n.In[0].Tensor.Type
	pattern := o.C
	switch {
	case isDouble(from):
		pattern = o.DoubleC
	case !isFloat(from):
		pattern = o.IntegerC
	}
	switch {
	case n.Op == "Cast":
		return cast(x[0], n), nil
	case pattern == "":
		return "", unsupported("%s of elements of type %s", n.Op, from)
	case n.Residue():
		return fmt.Sprintf("residue_of<%.0f>(%s)", n.In[1].Tensor.Data[0], x[0]), nil
	case n.Op == "Pow":
		return power(n, x, pattern), nil
	case o.Alpha != 0:
		kind := onnxpb.TensorProto_FLOAT // also of numbers in bf16
		if isDouble(from) {
			kind = from
		}
		return fmt.Sprintf(pattern, x[0], literal(n.Alpha, kind)), nil
	case o.Inputs == 0:
		code := x[0]
		for _, other := range x[1:] {
			code = fmt.Sprintf(pattern, code, other)
		}
		return code, nil
	}
	operands := make([]any, len(x))
	for i := range x {
		operands[i] = x[i]
	}
	return fmt.Sprintf(pattern, operands...), nil
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
func power(n *fuse.Node, x []string, general string) string {
	exponent := math.NaN()
	if t := n.In[1].Tensor; t.Constant && len(t.Data) == 1 {
		exponent = t.Data[0]
	}
	root, inverseRoot, one := "sqrtf(%s)", "rsqrtf(%s)", "1.f / %s"
	if isDouble(n.Out[0].Type) {
		root, inverseRoot, one = "sqrt(%s)", "1.0 / sqrt(%s)", "1.0 / %s"
	}
	switch exponent {
	case 1:
		return x[0]
	case 2:
		return fmt.Sprintf("%s * %s", x[0], x[0])
	case 3:
		return fmt.Sprintf("%s * %s * %s", x[0], x[0], x[0])
	case 0.5:
		return fmt.Sprintf(root, x[0])
	case -0.5:
		return fmt.Sprintf(inverseRoot, x[0])
	case -1:
		return fmt.Sprintf(one, x[0])
	}
	return fmt.Sprintf(general, x[0], x[1])
}
