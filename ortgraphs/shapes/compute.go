package shapes

import (
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// compute returns the numbers of a node's output, for the operators with which graphs compute shapes. It returns nil
// for other operators, and if the numbers of an input are unknown.
func compute(n *Node) []float64 {
	for _, v := range n.In {
		if v != nil && (v.Data == nil || v.Rounded() && !moves(n.Op())) {
			return nil
		}
	}
	if len(n.In) == 0 || n.In[0] == nil {
		return nil
	}
	out := n.Out[0]
	switch n.Op() {
	case "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Cast", "CastLike":
		return n.In[0].Data
	case "Concat":
		if len(out.Shape) == 1 {
			var all []float64
			for _, v := range n.In {
				all = append(all, v.Data...)
			}
			return all
		}
	case "Gather":
		return gatherData(n)
	case "Slice":
		return sliceData(n)
	case "Expand":
		return index(out.Shape, n.In[0])
	case "ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin":
		if out.Elements() == 1 {
			return []float64{fold(n.Op(), n.In[0].Data)}
		}
	}
	if o := operators.Table[n.Op()]; o != nil && o.Folds && !slices.Contains(n.In, nil) &&
		(len(n.In) == o.Inputs || o.Inputs == 0) {
		return apply(o, n)
	}
	return nil
}

// apply computes the numbers of an elementwise operator.
func apply(o *operators.Operator, n *Node) []float64 {
	operands := make([][]float64, len(n.In))
	for i, v := range n.In {
		operands[i] = index(n.Out[0].Shape, v)
	}
	data := make([]float64, len(operands[0]))
	x, integer := make([]float64, len(operands)), make([]int64, len(operands))
	integers := o.Integers != nil && isInteger(n.In[0].Type)
	for i := range data {
		for k, numbers := range operands {
			x[k], integer[k] = numbers[i], whole(numbers[i])
		}
		if data[i] = o.Of(x); integers {
			data[i] = float64(o.Integers(integer))
		}
	}
	return data
}

// moves reports whether an operator only selects numbers. The largest integer, which stands for the end of a dimension,
// may pass it.
func moves(op string) bool {
	switch op {
	case "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Concat", "Gather", "Slice", "Expand", "Where",
		"Min", "Max":
		return true
	}
	return false
}

// index broadcasts the numbers of a value to a shape.
func index(shape []int64, v *Value) []float64 {
	out := make([]float64, product(shape))
	lead := len(shape) - len(v.Shape)
	for i := range out {
		rest, at, stride := int64(i), int64(0), int64(1)
		for k := len(shape) - 1; k >= lead; k-- {
			d := rest % shape[k]
			rest /= shape[k]
			if v.Shape[k-lead] != 1 {
				at += d * stride
			}
			stride *= v.Shape[k-lead]
		}
		out[i] = v.Data[at]
	}
	return out
}

func gatherData(n *Node) []float64 {
	x, indices := n.In[0], n.In[1]
	if len(x.Shape) != 1 {
		return nil
	}
	out := make([]float64, len(indices.Data))
	for i, f := range indices.Data {
		k := int64(f)
		if k < 0 {
			k += x.Shape[0]
		}
		if k < 0 || k >= x.Shape[0] {
			return nil
		}
		out[i] = x.Data[k]
	}
	return out
}

func sliceData(n *Node) []float64 {
	x := n.In[0]
	if len(x.Shape) != 1 {
		return nil
	}
	starts, _, _ := n.Integers(1, "starts")
	steps, _, _ := n.Integers(4, "")
	step := int64(1)
	if len(steps) > 0 {
		step = steps[0]
	}
	if len(starts) != 1 {
		return nil
	}
	out := make([]float64, n.Out[0].Shape[0])
	for i := range out {
		out[i] = x.Data[clamp(starts[0], step, x.Shape[0])+int64(i)*step]
	}
	return out
}

// toType returns the numbers as a tensor of the type has them.
func toType(data []float64, t Type) []float64 {
	out := slices.Clone(data)
	for i, x := range out {
		switch {
		case t == onnxpb.TensorProto_BOOL && x != 0:
			out[i] = 1
		case isInteger(t):
			out[i] = math.Trunc(x)
		case t == onnxpb.TensorProto_FLOAT:
			out[i] = float64(float32(x))
		case t == onnxpb.TensorProto_BFLOAT16:
			out[i] = float64(math.Float32frombits(uint32(BF16(float32(x))) << 16))
		}
	}
	return out
}

// BF16 returns the bits of the bfloat16 nearest to a number, of two the even one.
func BF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | 1 // rounding could make it infinite
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func fold(op string, data []float64) float64 {
	if len(data) == 0 {
		return 0
	}
	out := data[0]
	for _, x := range data[1:] {
		switch op {
		case "ReduceProd":
			out *= x
		case "ReduceSum":
			out += x
		case "ReduceMax":
			out = max(out, x)
		case "ReduceMin":
			out = min(out, x)
		}
	}
	return out
}
