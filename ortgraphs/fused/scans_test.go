package fused_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// scans makes a graph of Scans that do not depend on each other: each finds the largest of the items of some sequences,
// which have four numbers, times a factor, which is a number or has four.
func scans(sequences int, factors ...[]float32) *onnxpb.ModelProto {
	info := func(name string, shape ...int64) *onnxpb.ValueInfoProto {
		dims := &onnxpb.TensorShapeProto{}
		for _, n := range shape {
			dims.Dim = append(dims.Dim,
				&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}})
		}
		return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_TensorType{
				TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1), Shape: dims},
			}}}
	}
	g := &onnxpb.GraphProto{Name: proto.String("scans"), Input: []*onnxpb.ValueInfoProto{info("start", 4)}}
	for i, f := range factors {
		factor := &onnxpb.TensorProto{Name: proto.String("factor"), DataType: proto.Int32(1), FloatData: f}
		if len(f) > 1 {
			factor.Dims = []int64{int64(len(f))}
		}
		step := &onnxpb.GraphProto{
			Name: proto.String("step"), Input: []*onnxpb.ValueInfoProto{info("sum0", 4)},
			Output:      []*onnxpb.ValueInfoProto{info(fmt.Sprintf("sum%d", sequences), 4)},
			Initializer: []*onnxpb.TensorProto{factor},
		}
		scan := node("Scan", "num_scan_inputs", fmt.Sprintf("sum%d", i), "start")
		for j := range sequences {
			item, part, sequence := fmt.Sprintf("item%d", j), fmt.Sprintf("part%d", j), fmt.Sprintf("x%d.%d", i, j)
			step.Input = append(step.Input, info(item, 4))
			step.Node = append(step.Node, node("Mul", "", part, item, "factor"),
				node("Max", "", fmt.Sprintf("sum%d", j+1), fmt.Sprintf("sum%d", j), part))
			scan.Input, g.Input = append(scan.Input, sequence), append(g.Input, info(sequence, 5, 4))
		}
		scan.Attribute[0].I = proto.Int64(int64(sequences))
		scan.Attribute = append(scan.Attribute, &onnxpb.AttributeProto{
			Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: step,
		})
		g.Node, g.Output = append(g.Node, scan), append(g.Output, info(scan.Output[0], 4))
	}
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(18)}},
	}
}

// TestUnsupportedScan: of Scans that do not depend on each other, only the one that no kernel computes stays as
// exported. Those that read too much for one call are two launches.
func TestUnsupportedScan(t *testing.T) {
	number, vector := []float32{2}, []float32{1, 2, 3, 4}
	for _, c := range []struct {
		sequences int
		factors   [][]float32
		regions   []string
	}{
		{1, [][]float32{number, number, number, number}, []string{"4 times recurrence"}},
		{1, [][]float32{number, vector, number, number}, []string{"3 times recurrence"}},
		{1, [][]float32{vector, number, number, vector, number, number}, []string{"4 times recurrence"}},
		{70, [][]float32{number, number, number, number}, []string{"3 times recurrence", "recurrence"}},
	} {
		p, err := fused.PlanOf(scans(c.sequences, c.factors...), nil, fused.Form{})
		if err != nil {
			t.Fatal(err)
		}
		var regions []string
		for i := range p.Regions() {
			if p.Compiled(i) {
				name, _, _ := strings.Cut(p.Describe(i), " of 5 steps")
				regions = append(regions, name)
			}
		}
		unsupported := 0
		for _, f := range c.factors {
			unsupported += len(f) / len(vector)
		}
		if !slices.Equal(regions, c.regions) || len(p.Left) != unsupported {
			t.Errorf("kernels are %q, want %q; left are %q", regions, c.regions, p.Left)
		}
		for _, left := range p.Left {
			if !strings.HasSuffix(left, ": a step reads the constant factor of [4]") {
				t.Error(left)
			}
		}
	}
}
