package shapes

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// rule sets the outputs of a node whose inputs are known. An output that it does not set stays unknown.
type rule func(n *Node) error

// rules has the operators of training graphs.
var rules = map[string]rule{}

func init() {
	add := func(r rule, ops ...string) {
		for _, op := range ops {
			rules[op] = r
		}
	}
	// beside those of package operators
	add(elementwise, "Sum", "Mean", "PRelu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift",
		"com.microsoft.BiasGelu", "com.microsoft.FastGelu")
	add(like, "Selu", "Celu", "HardSigmoid", "HardSwish", "Mish", "Softsign", "ThresholdedRelu", "Tan", "Asin", "Acos",
		"Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "BitwiseNot", "Clip", "Identity", "Softmax", "LogSoftmax",
		"Hardmax", "CumSum", "Trilu", "LpNormalization", "InstanceNormalization", "GroupNormalization",
		"BatchNormalization", "MeanVarianceNormalization", "IsNaN", "IsInf", "Dropout", "ReverseSequence",
		"ScatterElements", "ScatterND", "com.microsoft.QuickGelu", "MemcpyFromHost", "MemcpyToHost")
	add(cast, "Cast", "CastLike")
	add(layerNormalization, "LayerNormalization", "SimplifiedLayerNormalization",
		"com.microsoft.SkipLayerNormalization")
	add(matMul, "MatMul", "com.microsoft.FusedMatMul")
	add(gemm, "Gemm", "com.microsoft.FusedGemm")
	add(transpose, "Transpose")
	add(reshape, "Reshape")
	add(flatten, "Flatten")
	add(unsqueeze, "Unsqueeze")
	add(squeeze, "Squeeze")
	add(concat, "Concat")
	add(split, "Split")
	add(slice, "Slice")
	add(gather, "Gather")
	add(gatherElements, "GatherElements")
	add(gatherND, "GatherND")
	add(expand, "Expand")
	add(tile, "Tile")
	add(padding, "Pad")
	add(oneHot, "OneHot")
	add(reduce, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
		"ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
	add(arg, "ArgMax", "ArgMin")
	add(topK, "TopK")
	add(shapeOf, "Shape")
	add(sizeOf, "Size")
	add(constantOfShape, "ConstantOfShape")
	add(constantNode, "Constant")
	add(rangeOf, "Range")
	add(eyeLike, "EyeLike")
	add(conv, "Conv", "com.microsoft.FusedConv")
	add(convTranspose, "ConvTranspose")
}

// ruleOf returns the rule of an operator, or nil.
func ruleOf(op string) rule {
	switch o := operators.Table[op]; {
	case rules[op] != nil:
		return rules[op]
	case o == nil || len(o.ONNX) > 0:
		return nil
	case o.Inputs == 1:
		return like
	}
	return elementwise
}

// boolean reports whether the result of an operator is a boolean, whatever its operands are.
func boolean(op string) bool {
	o := operators.Table[op]
	return op == "IsNaN" || op == "IsInf" || o != nil && o.Result == operators.Boolean
}

// infer sets the outputs of a node.
func infer(n *Node) error {
	r := ruleOf(n.Op())
	if r == nil {
		return nil
	}
	constant := true
	for _, v := range n.In {
		if v == nil {
			continue
		}
		if !v.Known() {
			types(n)
			return nil
		}
		constant = constant && v.Constant
	}
	if err := r(n); err != nil {
		return err
	}
	for _, v := range n.Out {
		if v != nil {
			v.Constant = constant && n.Op() != "Shape" // a constant's shape is also a constant, and needs no node
			if len(n.In) > 0 && v.Known() && v.Data == nil && product(v.Shape) <= maxData {
				v.Data = toType(compute(n), v.Type)
			}
		}
	}
	return nil
}

// types sets the known types of the outputs if a shape is unknown.
func types(n *Node) {
	if len(n.Out) == 0 || n.Out[0] == nil {
		return
	}
	switch op := n.Op(); op {
	case "Shape", "Size", "ArgMax", "ArgMin":
		n.Out[0].Type = onnxpb.TensorProto_INT64
	case "Cast":
		n.Out[0].Type = Type(n.Integer("to", 0))
	case "Where", "OneHot":
		if v := n.Input(len(n.In) - 1); v != nil {
			n.Out[0].Type = v.Type
		}
	default:
		if boolean(op) {
			n.Out[0].Type = onnxpb.TensorProto_BOOL
		} else if v := n.Input(0); v != nil {
			for _, out := range n.Out {
				if out != nil {
					out.Type = v.Type
				}
			}
		}
	}
}

// needs checks that the first inputs exist, which a hostile graph may omit.
func needs(n *Node, inputs int) error {
	for i := range inputs {
		if n.Input(i) == nil {
			return fmt.Errorf("input %d is missing", i)
		}
	}
	if len(n.Out) == 0 || n.Out[0] == nil {
		return fmt.Errorf("output 0 is missing")
	}
	return nil
}

func (n *Node) set(i int, t Type, shape []int64) {
	if i < len(n.Out) && n.Out[i] != nil {
		if shape == nil {
			shape = []int64{}
		}
		n.Out[i].Type, n.Out[i].Shape = t, shape
	}
}

// axis converts a possibly negative axis to one in 0..rank-1.
func axis(a int64, rank int) (int, error) {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		return 0, fmt.Errorf("axis %d of a tensor with %d", a, rank)
	}
	return int(a), nil
}

// Integers returns the integers of an input, or of an attribute in older opsets. ok is false if they are not known
// before the graph runs.
func (n *Node) Integers(input int, attribute string) (values []int64, given, ok bool) {
	if v := n.Input(input); v != nil {
		if v.Data == nil {
			return nil, true, false
		}
		for _, f := range v.Data {
			values = append(values, whole(f))
		}
		return values, true, true
	}
	if a := n.Attribute(attribute); a != nil {
		return a.Ints, true, true
	}
	return nil, false, true
}

// whole returns the integer that f represents. The largest i64, with which exporters write "to the end", is not an f64:
// the nearest is 2^63, whose conversion to i64 is undefined in Go.
func whole(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// broadcast joins shapes as ONNX's operators do.
func broadcast(shapes ...[]int64) ([]int64, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int64, rank)
	for i := range out {
		out[i] = 1
		for _, s := range shapes {
			k := i - (rank - len(s))
			if k < 0 || s[k] == 1 {
				continue
			}
			if out[i] != 1 && out[i] != s[k] {
				return nil, fmt.Errorf("the shapes %d do not match", shapes)
			}
			out[i] = s[k]
		}
	}
	return out, nil
}

func elementwise(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	shapes := make([][]int64, 0, len(n.In))
	for _, v := range n.In {
		if v != nil {
			shapes = append(shapes, v.Shape)
		}
	}
	shape, err := broadcast(shapes...)
	if err != nil {
		return err
	}
	t := n.In[0].Type
	if o := operators.Table[n.Op()]; o != nil && o.Result == operators.OfSecond {
		if err := needs(n, o.Inputs); err != nil {
			return err
		}
		t = n.In[1].Type
	}
	if boolean(n.Op()) {
		t = onnxpb.TensorProto_BOOL
	}
	n.set(0, t, shape)
	return nil
}

// like is for operators whose outputs have the shape of the first input.
func like(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0]
	t := x.Type
	if boolean(n.Op()) {
		t = onnxpb.TensorProto_BOOL
	}
	n.set(0, t, slices.Clone(x.Shape))
	if n.Op() == "Dropout" {
		n.set(1, onnxpb.TensorProto_BOOL, slices.Clone(x.Shape))
	}
	return nil
}

func cast(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	t := Type(n.Integer("to", 0))
	if n.Op() == "CastLike" {
		if err := needs(n, 2); err != nil {
			return err
		}
		t = n.In[1].Type
	}
	if t == onnxpb.TensorProto_UNDEFINED {
		return fmt.Errorf("the type is missing")
	}
	n.set(0, t, slices.Clone(n.In[0].Shape))
	return nil
}

func layerNormalization(n *Node) error {
	if err := like(n); err != nil {
		return err
	}
	x := n.In[0]
	a, err := axis(n.Integer("axis", -1), len(x.Shape))
	if err != nil {
		return err
	}
	if scale := n.Input(1); n.Op() == "LayerNormalization" && scale != nil {
		if _, err := broadcast(x.Shape[a:], scale.Shape); err != nil {
			return err
		}
	}
	stat := slices.Clone(x.Shape)
	for i := a; i < len(stat); i++ {
		stat[i] = 1
	}
	n.set(1, onnxpb.TensorProto_FLOAT, stat)
	n.set(2, onnxpb.TensorProto_FLOAT, slices.Clone(stat))
	return nil
}

func reduce(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0]
	axes, given, ok := n.Integers(1, "axes")
	if !ok {
		return nil
	}
	if len(axes) == 0 {
		if given || n.Integer("noop_with_empty_axes", 0) == 0 {
			for i := range x.Shape {
				axes = append(axes, int64(i))
			}
		} else {
			n.set(0, x.Type, slices.Clone(x.Shape))
			return nil
		}
	}
	keep := n.Integer("keepdims", 1) != 0
	shape, err := without(x.Shape, axes, keep)
	if err != nil {
		return err
	}
	n.set(0, x.Type, shape)
	return nil
}

// without removes axes from a shape, or sets them to 1.
func without(shape, axes []int64, keep bool) ([]int64, error) {
	gone := make([]bool, len(shape))
	for _, a := range axes {
		i, err := axis(a, len(shape))
		if err != nil {
			return nil, err
		}
		gone[i] = true
	}
	out := []int64{}
	for i, d := range shape {
		switch {
		case !gone[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out, nil
}

func arg(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	shape, err := without(n.In[0].Shape, []int64{n.Integer("axis", 0)}, n.Integer("keepdims", 1) != 0)
	if err != nil {
		return err
	}
	n.set(0, onnxpb.TensorProto_INT64, shape)
	return nil
}

// topK sets the largest elements and their places.
func topK(n *Node) error {
	if err := needs(n, 2); err != nil {
		return err
	}
	count, _, ok := n.Integers(1, "")
	if !ok || len(count) != 1 {
		return nil
	}
	shape := slices.Clone(n.In[0].Shape)
	a, err := axis(n.Integer("axis", -1), len(shape))
	if err != nil {
		return err
	}
	if count[0] < 0 || count[0] > shape[a] {
		return fmt.Errorf("the %d largest of %d elements", count[0], shape[a])
	}
	shape[a] = count[0]
	n.set(0, n.In[0].Type, shape)
	n.set(1, onnxpb.TensorProto_INT64, slices.Clone(shape))
	return nil
}
