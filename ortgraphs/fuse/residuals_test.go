package fuse_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// withResidual is a linear graph in bf16 with another matrix r, and with more outputs.
func withResidual(
	t onnxpb.TensorProto_DataType, rows, columns int64, outputs []string, nodes ...*onnxpb.NodeProto,
) *onnxpb.ModelProto {
	m := linear(t, 16, columns, nodes...)
	m.Graph.Input[0], m.Graph.Output[0] = typed("x", t, rows, 16), typed("y", t, rows, columns)
	m.Graph.Input = append(m.Graph.Input, typed("r", t, rows, columns), typed("one", t, 1, columns))
	for _, name := range outputs {
		m.Graph.Output = append(m.Graph.Output, typed(name, t, rows, columns))
	}
	return m
}

// inRows is a graph whose product has its rows in one dimension, as the exporter writes linear layers, and whose sum
// has them in two.
func inRows() *onnxpb.ModelProto {
	m := withResidual(bf16, 6, 8, nil, op("Add", "h", "xw", "c"), op("Reshape", "h3", "h", "shape"),
		op("Reshape", "r3", "r", "shape"), op("Add", "y", "r3", "h3"))
	m.Graph.Initializer = []*onnxpb.TensorProto{{
		Name: proto.String("shape"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{3},
		Int64Data: []int64{2, 3, 8},
	}}
	divideRows(m.Graph.Output[0])
	return m
}

// inCube is a graph whose matrices all have their rows in two dimensions.
func inCube() *onnxpb.ModelProto {
	m := withResidual(bf16, 6, 8, nil, op("Add", "h", "xw", "c"), op("Add", "y", "h", "r"))
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output) {
		if slices.Contains([]string{"x", "r", "y"}, v.GetName()) {
			divideRows(v)
		}
	}
	return m
}

// divideRows makes 2 x 3 of 6 rows.
func divideRows(v *onnxpb.ValueInfoProto) {
	shape := v.Type.GetTensorType().Shape
	shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 3}
	shape.Dim = slices.Insert(shape.Dim, 0,
		&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 2}})
}

// TestResiduals: a planned product adds a matrix that is in memory in any case, where nothing else reads the product
// without it.
func TestResiduals(t *testing.T) {
	const one, both, biased = "product with a residual of 1", "product with a bias and a residual of 1",
		"product with a bias of 1"
	bias, sum, exp := op("Add", "h", "xw", "c"), op("Add", "y", "h", "r"), op("Exp", "e", "r")
	model := func(outputs []string, nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
		return withResidual(bf16, 6, 8, outputs, nodes...)
	}
	second := []*onnxpb.NodeProto{bias, op("MatMul", "p", "x", "w"), op("Add", "s", "p", "c")}
	for name, c := range map[string]struct {
		model *onnxpb.ModelProto
		want  []string // regions
	}{
		"with a bias":            {model(nil, bias, sum), []string{both}},
		"the residual first":     {model(nil, bias, op("Add", "y", "r", "h")), []string{both}},
		"rows in two dimensions": {inRows(), []string{both}},
		"large, without a bias":  {withResidual(bf16, 2048, 1024, nil, op("Add", "y", "xw", "r")), []string{one}},
		"small, without a bias": {
			withResidual(bf16, 2048, 1016, nil, op("Add", "y", "xw", "r")), []string{"Add of 1"},
		},
		"f32": {
			withResidual(onnxpb.TensorProto_FLOAT, 6, 8, nil, op("Add", "y", "xw", "r")), []string{"Add of 1"},
		},
		"one row": {model(nil, bias, op("Add", "y", "h", "one")), []string{"Add of 1", biased}},
		"gelu of the sum": {
			model(nil, bias, op("Add", "s", "h", "r"), op("Gelu", "y", "s")), []string{"GeluTanh of 1", both},
		},
		"the product is read": {
			model([]string{"z"}, bias, sum, op("Neg", "z", "h")), []string{"Add, Neg of 2", biased},
		},
		"the product is an output": {model([]string{"h"}, bias, sum), []string{"Add of 1", biased}},
		"the product twice":        {model(nil, bias, op("Add", "y", "h", "h")), []string{"Add of 1", biased}},
		"computed for the sum": {
			model(nil, bias, exp, op("Add", "y", "h", "e")), []string{"Add, Exp of 1", biased},
		},
		"computed with what reads it": {model(nil, bias, exp, op("Add", "s", "h", "e"), op("Mul", "y", "s", "e")),
			[]string{"Exp 2, Add, Mul of 1", biased}},
		"computed, and an output": {
			model([]string{"e"}, bias, exp, op("Add", "y", "h", "e")), []string{"Exp of 1", both},
		},
		"of a product": {
			model(nil, append(second, op("Add", "y", "h", "s"))...), []string{both, biased},
		},
		"of a product that is read": {
			model([]string{"h"}, append(second, op("Add", "y", "h", "s"))...), []string{both, biased},
		},
		"the same the other way": {
			model([]string{"h"}, append(second, op("Add", "y", "s", "h"))...), []string{both, biased},
		},
		"two of them": {
			model(nil, bias, op("Add", "s", "h", "r"), op("Add", "y", "s", "r")), []string{"Add of 1", both},
		},
		"what the product multiplies": {square(
			op("Exp", "e", "x"), op("MatMul", "p", "e", "w"), op("Add", "h", "p", "c"), op("Add", "y", "e", "h"),
		),
			[]string{"Exp of 1", both}},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, regions := partition(t, c.model, shapes.Sizes{})
			var got []string
			for _, r := range regions {
				got = append(got, fmt.Sprintf("%s of %d", r.Ops(), len(r.Out)))
			}
			slices.Sort(got)
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			emit(t, g, regions)
		})
	}
}

// square is a graph in bf16 whose weights have as many columns as rows.
func square(nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
	m := linear(bf16, 8, 8)
	m.Graph.Node = nodes
	return m
}

// TestResidualSum: the product, its bias and the residual are summed, also by the operators that take the place of a
// kernel.
func TestResidualSum(t *testing.T) {
	for name, c := range map[string]struct {
		model *onnxpb.ModelProto
		ops   []string
	}{"rows": {inRows(), []string{"Gemm", "Add"}}, "cube": {inCube(), []string{"MatMul", "Add", "Add"}}} {
		t.Run(name, func(t *testing.T) {
			_, g, regions := partition(t, c.model, shapes.Sizes{})
			values := memory{}
			// small integers, which bf16 has
			number := func(name string, i int) float64 { return float64((len(name)*7+int(name[0])+5*i)%9 - 4) }
			for _, in := range g.Inputs {
				list := make([]float64, in.Elements())
				for i := range list {
					list[i] = number(in.Name, i)
				}
				values[in] = encode(list, in.Type)
			}
			got, err := interpret(g, regions, values)
			if err != nil {
				t.Fatal(err)
			}
			for i, y := range got[g.Outputs[0].Tensor] {
				want := number("c", i%8) + number("r", i)
				for k := range 16 {
					want += number("x", i/8*16+k) * number("w", k*8+i%8)
				}
				if y.f != want {
					t.Errorf("%d: %g, want %g", i, y.f, want)
				}
			}
			var ops []string
			for _, n := range emit(t, g, regions).Graph.Node {
				if n.GetOpType() != "Reshape" {
					ops = append(ops, n.GetOpType())
				}
			}
			if !slices.Equal(ops, c.ops) {
				t.Errorf("%q, want %q", ops, c.ops)
			}
			p := productsOf(regions[0])
			if len(regions) != 1 || !slices.Equal(regions[0].Shapes[0], []int{2, 3, 8}) || p.Rows != 6 {
				t.Errorf("%d regions, %+v, shapes %v", len(regions), *p, regions[0].Shapes)
			}
		})
	}
}
