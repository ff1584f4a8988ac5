package shapes

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func shapeOf(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	x := n.In[0].Shape
	clip := func(i int64) int64 {
		if i < 0 {
			i += int64(len(x))
		}
		return min(max(i, 0), int64(len(x)))
	}
	start, end := clip(n.Integer("start", 0)), clip(n.Integer("end", int64(len(x))))
	x = x[start:max(start, end)]
	n.set(0, onnxpb.TensorProto_INT64, []int64{int64(len(x))})
	n.Out[0].Data = floats(x)
	return nil
}

func floats(values []int64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

func sizeOf(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	n.set(0, onnxpb.TensorProto_INT64, nil)
	n.Out[0].Data = []float64{float64(product(n.In[0].Shape))}
	return nil
}

func constantOfShape(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	shape, _, ok := n.Integers(0, "")
	t, value := onnxpb.TensorProto_FLOAT, []float64{0}
	if a := n.Attribute("value"); a.GetT() != nil {
		t, value = Type(a.T.GetDataType()), numbers(a.T, 1)
	}
	if !ok {
		n.Out[0].Type = t
		return nil
	}
	n.set(0, t, shape)
	if slices.ContainsFunc(shape, func(d int64) bool { return d < 0 }) {
		return fmt.Errorf("the shape %d", shape)
	}
	if total := product(n.Out[0].Shape); total <= maxData && len(value) == 1 {
		n.Out[0].Data = slices.Repeat(value, int(total))
	}
	return nil
}

func constantNode(n *Node) error {
	if len(n.Out) == 0 || n.Out[0] == nil {
		return fmt.Errorf("output 0 is missing")
	}
	out := n.Out[0]
	for _, a := range n.Proto.Attribute {
		switch a.GetName() {
		case "value":
			if a.T == nil {
				return fmt.Errorf("value is not a tensor")
			}
			v := constant(a.T)
			out.Type, out.Shape, out.Data, out.Proto = v.Type, v.Shape, v.Data, v.Proto
		case "value_int":
			out.Type, out.Shape, out.Data = onnxpb.TensorProto_INT64, []int64{}, []float64{float64(a.GetI())}
		case "value_float":
			out.Type, out.Shape, out.Data = onnxpb.TensorProto_FLOAT, []int64{}, []float64{float64(a.GetF())}
		case "value_ints":
			out.Type, out.Shape, out.Data = onnxpb.TensorProto_INT64, []int64{int64(len(a.Ints))}, floats(a.Ints)
		case "value_floats":
			out.Type, out.Shape, out.Data = onnxpb.TensorProto_FLOAT, []int64{int64(len(a.Floats))},
				make([]float64, len(a.Floats))
			for i, f := range a.Floats {
				out.Data[i] = float64(f)
			}
		}
	}
	return nil
}

func rangeOf(n *Node) error {
	if err := needs(n, 3); err != nil {
		return err
	}
	t := n.In[0].Type
	n.Out[0].Type = t
	var v [3]float64
	for i := range v {
		if len(n.In[i].Data) != 1 {
			return nil
		}
		v[i] = n.In[i].Data[0]
	}
	if v[2] == 0 {
		return fmt.Errorf("a delta of 0")
	}
	length := math.Ceil((v[1] - v[0]) / v[2])
	if !(length < 1<<31) {
		return fmt.Errorf("from %g to %g by %g", v[0], v[1], v[2])
	}
	count := int64(max(0, length))
	n.set(0, t, []int64{count})
	if count <= maxData {
		data := make([]float64, count)
		for i := range data {
			data[i] = v[0] + float64(i)*v[2]
		}
		n.Out[0].Data = data
	}
	return nil
}

func eyeLike(n *Node) error {
	if err := needs(n, 1); err != nil {
		return err
	}
	t := n.In[0].Type
	if a := n.Attribute("dtype"); a != nil {
		t = Type(a.GetI())
	}
	n.set(0, t, slices.Clone(n.In[0].Shape))
	return nil
}
