package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

const bf16 = onnxpb.TensorProto_BFLOAT16

// typed is matrixInfo for another type, or a vector if rows is 0.
func typed(name string, t onnxpb.TensorProto_DataType, rows, columns int64) *onnxpb.ValueInfoProto {
	v := matrixInfo(name, rows, columns)
	tensor := v.Type.GetTensorType()
	tensor.ElemType = proto.Int32(int32(t))
	if rows == 0 {
		tensor.Shape.Dim = tensor.Shape.Dim[1:]
	}
	return v
}

func op(kind string, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: &kind, Input: in, Output: []string{out}}
	switch kind {
	case "Cast":
		n.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(bf16))},
		}
	case "Gelu":
		n.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String("approximate"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte("tanh")},
		}
	}
	return n
}

// linear is a graph of a product of x with w, and of other nodes, whose result is y.
func linear(t onnxpb.TensorProto_DataType, inner, columns int64, nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: proto.String("linear"), Node: append(
		[]*onnxpb.NodeProto{op("MatMul", "xw", "x", "w")}, nodes...),
		Input: []*onnxpb.ValueInfoProto{
			typed("x", t, 6, inner), typed("w", t, inner, columns), typed("b", onnxpb.TensorProto_FLOAT, 0, columns),
			typed("c", t, 0, columns)},
		Output: []*onnxpb.ValueInfoProto{typed("y", t, 6, columns)}}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

func dimensions(name string, list ...int64) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{int64(len(list))},
		Int64Data: list,
	}
}

// reshaped is a linear graph whose product is reshaped before the bias is added.
func reshaped() *onnxpb.ModelProto {
	m := linear(bf16, 16, 8, op("Reshape", "r", "xw", "shape"), op("Add", "h", "r", "c"), op("Neg", "n", "h"),
		op("Reshape", "y", "n", "rows"))
	m.Graph.Initializer = []*onnxpb.TensorProto{dimensions("shape", 3, 2, 8), dimensions("rows", 6, 8)}
	return m
}

// turned is a linear graph whose sum is an operand of another product: its last two dimensions are exchanged, or the
// first two.
func turned(last bool) *onnxpb.ModelProto {
	perm, inner, result := []int64{1, 0, 2}, int64(8), []int64{2, 3, 5}
	if last {
		perm, inner, result = []int64{0, 2, 1}, 2, []int64{3, 8, 5}
	}
	transpose := op("Transpose", "t", "r")
	transpose.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: perm},
	}
	m := linear(bf16, 16, 8, op("Add", "h", "xw", "c"), op("Reshape", "r", "h", "shape"), transpose,
		op("MatMul", "y", "t", "v"))
	m.Graph.Initializer = []*onnxpb.TensorProto{dimensions("shape", 3, 2, 8)}
	m.Graph.Input = append(m.Graph.Input, typed("v", bf16, inner, 5))
	m.Graph.Output[0].Type.GetTensorType().Shape = &onnxpb.TensorShapeProto{}
	for _, d := range result {
		shape := m.Graph.Output[0].Type.GetTensorType().Shape
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return m
}

// TestBiases: a product adds its bias, and computes GELU in bf16, where nothing else reads the product without it.
func TestBiases(t *testing.T) {
	const f32 = onnxpb.TensorProto_FLOAT
	also := func(m *onnxpb.ModelProto, name string) *onnxpb.ModelProto { // another output
		columns := m.Graph.Output[0].Type.GetTensorType().Shape.Dim[1].GetDimValue()
		m.Graph.Output = append(m.Graph.Output,
			typed(name, onnxpb.TensorProto_DataType(m.Graph.Input[0].Type.GetTensorType().GetElemType()), 6, columns))
		return m
	}
	for name, c := range map[string]struct {
		model *onnxpb.ModelProto
		want  []string // regions
	}{
		"f32": {linear(f32, 16, 8, op("Add", "y", "xw", "b")), []string{"Add of 1"}},
		"the bias first": {
			linear(bf16, 16, 8, op("Add", "y", "c", "xw")), []string{"product with a bias of 1"},
		},
		"bf16": {
			linear(bf16, 16, 8, op("Cast", "b16", "b"), op("Add", "y", "xw", "b16")),
			[]string{"Cast of 1", "product with a bias of 1"},
		},
		"a bias in bf16": {
			linear(bf16, 16, 8, op("Add", "y", "xw", "c")), []string{"product with a bias of 1"},
		},
		"gelu": {
			linear(bf16, 16, 8, op("Add", "h", "xw", "c"), op("Gelu", "y", "h")), []string{"product with a bias of 1"},
		},
		"gelu and what it is of": {
			also(linear(bf16, 16, 8, op("Add", "h", "xw", "c"), op("Gelu", "y", "h")), "h"),
			[]string{"product with a bias of 2"},
		},
		"gelu that a region reads": {
			linear(bf16, 16, 8, op("Add", "h", "xw", "c"), op("Gelu", "g", "h"), op("Neg", "y", "g")),
			[]string{"product with a bias of 1", "GeluTanh, Neg of 1"},
		},
		"a region after it": {
			linear(bf16, 16, 8, op("Add", "h", "xw", "c"), op("Neg", "y", "h")),
			[]string{"product with a bias of 1", "Neg of 1"},
		},
		"reshaped before":             {reshaped(), []string{"product with a bias of 1", "Neg of 1"}},
		"an order that is copied":     {turned(false), []string{"Add, Copy of 1"}},
		"an order that is not copied": {turned(true), []string{"product with a bias of 1"}},
		"the product is read": {
			also(linear(bf16, 16, 8, op("Add", "y", "xw", "c"), op("Neg", "z", "xw")), "z"), []string{"Add, Neg of 2"},
		},
		"the product is an output": {also(linear(bf16, 16, 8, op("Add", "y", "xw", "c")), "xw"), []string{"Add of 1"}},
		"no bias, but a matrix":    {linear(bf16, 8, 8, op("Add", "y", "xw", "x")), []string{"Add of 1"}},
		"a bias that is computed": {
			linear(bf16, 16, 8, op("Exp", "e", "c"), op("Add", "y", "xw", "e")), []string{"Add, Exp of 1"},
		},
		"rows of 9":             {linear(bf16, 16, 9, op("Add", "y", "xw", "c")), []string{"Add of 1"}},
		"rows of 9 to multiply": {linear(bf16, 9, 16, op("Add", "y", "xw", "c")), []string{"Add of 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, regions := partition(t, c.model, shapes.Sizes{})
			var got []string
			for _, r := range regions {
				got = append(got, fmt.Sprintf("%s of %d", r.Ops(), len(r.Out)))
				p := productsOf(r)
				if p != nil && (p.Rows != 6 || p.Inner != 16 || p.Columns != 8 || p.Count != 1 || !p.Bias ||
					(p.Gelu == nil) != (len(r.Nodes) == 1)) {
					t.Errorf("%+v", p)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			emit(t, g, regions)
		})
	}
}

// chain is a graph of products one after another, each with a bias that is converted.
func chain(products int, width int64) *onnxpb.ModelProto {
	m := linear(bf16, width, width)
	m.Graph.Node, m.Graph.Output = nil, []*onnxpb.ValueInfoProto{typed(fmt.Sprintf("x%d", products), bf16, 6, width)}
	m.Graph.Input[0].Name = proto.String("x0")
	for i := range products {
		bias := fmt.Sprintf("b%d", i)
		m.Graph.Input = append(m.Graph.Input, typed(bias, onnxpb.TensorProto_FLOAT, 0, width))
		m.Graph.Node = append(m.Graph.Node, op("Cast", bias+"/16", bias),
			op("MatMul", bias+"/p", fmt.Sprintf("x%d", i), "w"),
			op("Add", fmt.Sprintf("x%d", i+1), bias+"/p", bias+"/16"))
	}
	return m
}

// TestManyBiases: one kernel converts the biases of many products, but not of any number.
func TestManyBiases(t *testing.T) {
	_, g, regions := partition(t, chain(105, 8), shapes.Sizes{})
	var converted []int
	for _, r := range regions {
		if r.Work == (fuse.Biases{}) {
			converted = append(converted, len(r.Nodes))
		}
	}
	if !slices.Equal(converted, []int{100, 5}) || len(regions) != 107 {
		t.Errorf("%d regions, which convert %v", len(regions), converted)
	}
	emit(t, g, regions)
}

// TestBiasKernels: biases that are longer than a block of threads, and shorter, are converted as the interpreter
// converts them.
func TestBiasKernels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var k kernels
	k.model(t, chain(3, 304), random.NormFloat64)
	k.model(t, chain(101, 8), random.NormFloat64)
	k.complete(t, 3)
	k.check(t, &emulation{}, 0)
}
