package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// rule lowers an operator that has at least so many inputs. It returns false, and adds nothing, if it does not know
// this form of it.
type rule struct {
	inputs int
	apply  func(l *lowering, n *shapes.Node) bool
}

var rules = map[string]rule{
	"Cast": {1, (*lowering).cast}, "CastLike": {1, (*lowering).cast}, "Clip": {1, (*lowering).clip},
	"Gelu": {1, (*lowering).gelu}, "Mod": {2, (*lowering).mod}, "Sum": {1, (*lowering).sum},
	"Softmax": {1, (*lowering).softmax}, "LogSoftmax": {1, (*lowering).softmax},
	"LayerNormalization": {1, (*lowering).layerNormalization}, "ReduceSum": {1, (*lowering).reduction},
	"ReduceMean": {1, (*lowering).reduction}, "ReduceMax": {1, (*lowering).reduction},
	"ReduceMin": {1, (*lowering).reduction}, "ReduceSumSquare": {1, (*lowering).reduction},
	"ReduceL2": {1, (*lowering).reduction}, "MatMul": {2, (*lowering).matMul}, "Gemm": {2, (*lowering).gemm},
	"Reshape": {1, (*lowering).reshape}, "Squeeze": {1, (*lowering).reshape}, "Unsqueeze": {1, (*lowering).reshape},
	"Flatten": {1, (*lowering).reshape}, "Identity": {1, (*lowering).reshape}, "Transpose": {1, (*lowering).transpose},
	"Expand": {1, (*lowering).expand}, "Tile": {2, (*lowering).tile}, "Constant": {0, (*lowering).constant},
	"ConstantOfShape": {1, (*lowering).constantOfShape}, "Range": {3, (*lowering).span},
	"Gather": {2, (*lowering).gather}, "GatherElements": {2, (*lowering).gatherElements},
	"InstanceNormalization": {3, (*lowering).instanceNormalization},
	"BatchNormalization":    {5, (*lowering).batchNormalization}, "Slice": {1, (*lowering).slice},
	"Split": {1, (*lowering).split}, "Concat": {1, (*lowering).concat}, "Pad": {1, (*lowering).pad},
	"CumSum": {2, (*lowering).cumSum},
}

// cast drops the rounding of f32 -> bf16 -> f32: the result is closer to the exact one.
func (l *lowering) cast(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	from := x.Tensor.From
	if from != nil && from.Op == "Cast" && v.Type == onnxpb.TensorProto_FLOAT &&
		x.Tensor.Type == onnxpb.TensorProto_BFLOAT16 && len(from.In[0].Views) == 0 &&
		from.In[0].Tensor.Type == onnxpb.TensorProto_FLOAT {
		x = Operand{from.In[0].Tensor, x.Views}
	}
	if narrow, ok := l.narrowed(x, v.Type); ok {
		x = narrow
	}
	if x.Tensor.Type != v.Type {
		x = l.elementwise("Cast", v.Name, v.Type, sizes(v), x)
	}
	l.operands[v] = x
	return true
}

func (l *lowering) clip(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	if n.Attribute("min") != nil || n.Attribute("max") != nil {
		return false // before opset 11
	}
	for i, op := range []string{"Max", "Min"} {
		if limit := n.Input(i + 1); limit != nil {
			x = l.elementwise(op, v.Name+"/"+op, v.Type, sizes(v), x, l.operand(limit))
		}
	}
	l.operands[v] = x
	return true
}

func (l *lowering) gelu(n *shapes.Node) bool {
	op, v := "Gelu", n.Out[0]
	if text(n, "approximate", "none") == "tanh" {
		op = "GeluTanh"
	}
	l.operands[v] = l.elementwise(op, v.Name, v.Type, sizes(v), l.operand(n.In[0]))
	return true
}

func (l *lowering) mod(n *shapes.Node) bool {
	v := n.Out[0]
	if isFloat(v.Type) || integer(n, "fmod", 0) != 0 {
		return false
	}
	l.operands[v] = l.elementwise("Mod", v.Name, v.Type, sizes(v), l.operand(n.In[0]), l.operand(n.In[1]))
	return true
}

func (l *lowering) sum(n *shapes.Node) bool {
	v := n.Out[0]
	x := l.operand(n.In[0])
	if !slices.Equal(x.Shape(), sizes(v)) || slices.Contains(n.In, nil) {
		return false
	}
	for _, other := range n.In[1:] {
		x = l.elementwise("Add", v.Name, v.Type, sizes(v), x, l.operand(other))
	}
	l.operands[v] = x
	return true
}

func (l *lowering) softmax(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	axis, ok := within(integer(n, "axis", -1), len(v.Shape))
	if !ok {
		return false
	}
	shape := sizes(v)
	largest := l.reduce("max", v.Name+"/max", x, axis)
	difference := l.elementwise("Sub", v.Name+"/difference", v.Type, shape, x, largest)
	power := l.elementwise("Exp", v.Name+"/exp", v.Type, shape, difference)
	total := l.reduce("sum", v.Name+"/sum", power, axis)
	if n.Op() == "Softmax" {
		l.operands[v] = l.elementwise("Div", v.Name, v.Type, shape, power, total)
		return true
	}
	logarithm := l.elementwise("Log", v.Name+"/log", v.Type, total.Shape(), total)
	l.operands[v] = l.elementwise("Sub", v.Name, v.Type, shape, difference, logarithm)
	return true
}

// layerNormalization computes mean and variance in f32, as stash_type says, and the rest in the type of x.
func (l *lowering) layerNormalization(n *shapes.Node) bool {
	v, f32 := n.Out[0], onnxpb.TensorProto_FLOAT
	shape := sizes(v)
	axis, ok := within(integer(n, "axis", -1), len(shape))
	if !ok || axis != len(shape)-1 || integer(n, "stash_type", 1) != 1 {
		return false
	}
	x := l.operand(n.In[0])
	if v.Type != f32 {
		x = l.elementwise("Cast", v.Name+"/f32", f32, shape, x)
	}
	share := scalar(1/float64(shape[axis]), f32)
	sum := l.reduce("sum", v.Name+"/sum", x, axis)
	mean := l.elementwise("Mul", v.Name+"/mean", f32, sum.Shape(), sum, share)
	centered := l.elementwise("Sub", v.Name+"/centered", f32, shape, x, mean)
	square := l.elementwise("Mul", v.Name+"/square", f32, shape, centered, centered)
	squares := l.reduce("sum", v.Name+"/squares", square, axis)
	variance := l.elementwise("Mul", v.Name+"/variance", f32, sum.Shape(), squares, share)
	safe := l.elementwise("Add", v.Name+"/safe", f32, sum.Shape(), variance, scalar(float(n, "epsilon", 1e-5), f32))
	inverse := l.elementwise("Rsqrt", v.Name+"/inverse", f32, sum.Shape(), safe)
	y := l.elementwise("Mul", v.Name+"/normal", f32, shape, centered, inverse)
	if v.Type != f32 {
		y = l.elementwise("Cast", v.Name+"/rounded", v.Type, shape, y)
	}
	if scale := n.Input(1); scale != nil {
		y = l.elementwise("Mul", v.Name+"/scaled", v.Type, shape, y, l.operand(scale))
	}
	if bias := n.Input(2); bias != nil {
		y = l.elementwise("Add", v.Name, v.Type, shape, y, l.operand(bias))
	}
	for i, o := range []Operand{y, mean, inverse} {
		if i < len(n.Out) && n.Out[i] != nil {
			l.operands[n.Out[i]] = o
		}
	}
	return true
}

func (l *lowering) reduction(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	rank := len(x.Shape())
	list, _, ok := numbers(n, 1, "axes")
	if !ok {
		return false
	}
	if len(list) == 0 {
		if integer(n, "noop_with_empty_axes", 0) != 0 {
			return false
		}
		for i := range rank {
			list = append(list, i)
		}
	}
	axes, count := []int{}, 1
	for _, a := range list {
		a, ok := within(a, rank)
		if !ok || slices.Contains(axes, a) {
			return false
		}
		axes = append(axes, a)
		count *= x.Shape()[a]
	}
	slices.Sort(axes)
	op := map[string]string{"ReduceMax": "max", "ReduceMin": "min"}[n.Op()]
	switch n.Op() {
	case "ReduceSum", "ReduceMean":
		op = "sum"
	case "ReduceSumSquare", "ReduceL2":
		op = "sum"
		x = l.elementwise("Mul", v.Name+"/square", v.Type, x.Shape(), x, x)
	}
	y := l.reduce(op, v.Name+"/"+op, x, axes...)
	switch n.Op() {
	case "ReduceMean":
		y = l.elementwise("Mul", v.Name+"/mean", v.Type, y.Shape(), y, scalar(1/float64(count), v.Type))
	case "ReduceL2":
		y = l.elementwise("Sqrt", v.Name+"/root", v.Type, y.Shape(), y)
	}
	l.operands[v] = y.view(View{Op: Reshape, To: sizes(v)})
	return true
}

func (l *lowering) matMul(n *shapes.Node) bool {
	a, b, v := l.operand(n.In[0]), l.operand(n.In[1]), n.Out[0]
	if len(a.Shape()) < 2 || len(b.Shape()) < 2 {
		return false
	}
	l.operands[v] = l.add(&Node{Kind: Product, Op: "MatMul", In: []Operand{a, b}}, v.Name, v.Type, sizes(v))
	return true
}

func (l *lowering) gemm(n *shapes.Node) bool {
	v := n.Out[0]
	if float(n, "alpha", 1) != 1 || float(n, "beta", 1) != 1 {
		return false
	}
	p := &Node{Kind: Product, Op: "MatMul", In: []Operand{l.operand(n.In[0]), l.operand(n.In[1])},
		Transposed: [2]bool{integer(n, "transA", 0) != 0, integer(n, "transB", 0) != 0}}
	y := l.add(p, v.Name+"/product", v.Type, sizes(v))
	if bias := n.Input(2); bias != nil {
		y = l.elementwise("Add", v.Name, v.Type, sizes(v), y, l.operand(bias))
	}
	l.operands[v] = y
	return true
}
