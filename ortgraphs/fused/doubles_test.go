package fused_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

const f32, f64 = onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_DOUBLE

// doubles makes up a graph with results in f64, and with sums up to each element in both types.
func doubles() *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: proto.String("doubles")}
	value := func(name string, t onnxpb.TensorProto_DataType, shape ...int64) *onnxpb.ValueInfoProto {
		tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: &onnxpb.TensorShapeProto{}}
		for _, d := range shape {
			tensor.Shape.Dim = append(tensor.Shape.Dim, &onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
		}
		return &onnxpb.ValueInfoProto{
			Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}}}
	}
	g.Input = append(g.Input, value("x", f32, 2, 40, 6), value("y", f32, 3, 80))
	node := func(out, op string, in ...string) string {
		n := &onnxpb.NodeProto{OpType: &op, Input: in, Output: []string{out}}
		if op == "Cast" {
			n.Attribute = []*onnxpb.AttributeProto{{
				Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(f64))}}
		}
		g.Node = append(g.Node, n)
		return out
	}
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String("one"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
		Int64Data: []int64{1}})
	for name, shape := range map[string][]int64{"x": {2, 40, 6}, "y": {3, 80}} {
		wide := node(name+"64", "Cast", name)
		powers := node(name+"e", "Exp", wide)
		node(name+"log", "Log", node(name+"sums", "CumSum", powers, "one"))
		node(name+"short", "Mul", node(name+"up", "CumSum", name, "one"), name)
		node(name+"all", "ReduceSum", node(name+"sine", "Sin", powers), "one")
		all := append([]int64{}, shape...)
		all[1] = 1
		g.Output = append(g.Output, value(name+"log", f64, shape...), value(name+"short", f32, shape...),
			value(name+"all", f64, all...))
	}
	return &onnxpb.ModelProto{IrVersion: proto.Int64(9), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}}}
}

// TestProofOfDoubles: the proof accepts kernels in f64, and sums up to each element, and finds those that are wrong,
// also if their results have only the digits of f32.
func TestProofOfDoubles(t *testing.T) {
	check := func(wrong, by string) (faults map[int]error) {
		t.Helper()
		p, err := fused.PlanOf(doubles(), nil, fused.Form{})
		if err != nil || len(p.Left) > 0 {
			t.Fatal(p.Left, err)
		}
		compiler := fusedtest.NewCompiler(t)
		changed := 0
		compiler.Faults = len(p.Sources())
		compiler.Change = func(program string) string {
			if wrong == "" || !strings.Contains(program, " region_") || !strings.Contains(program, wrong) {
				return program
			}
			changed++
			return strings.ReplaceAll(program, wrong, by)
		}
		programs, err := compiler.Compile(p.Sources())
		if err != nil {
			t.Fatal(err)
		}
		defer programs.Close()
		if failed := p.Load(programs); len(failed) > 0 {
			t.Fatal(failed)
		}
		random := rand.New(rand.NewPCG(3, 1))
		none := ort.SessionConfig{}
		faults, verdicts := prooftest.Prove(t, p, none, false, prooftest.All, func(ort.ValueInfo, int) float32 {
			return float32(random.NormFloat64())
		})
		if len(verdicts) != p.Regions() || wrong != "" && changed == 0 {
			t.Errorf("%s: %d of %d regions are proved, %d programs changed", by, len(verdicts), p.Regions(), changed)
		}
		return faults
	}
	if faults := check("", ""); len(faults) > 0 {
		t.Error(faults)
	}
	for _, c := range []struct{ wrong, by string }{
		{" = exp(", " = expf("}, {" = log(", " = logf("}, {" = sin(", " = 1.00000000001 * sin("},
		{"i < part;", "i + 1 < part;"}, {"total = joined(total, all);", ""},
		{"sums[part][across] = own_sum;", "sums[part][across] = 0;"},
		{"const int position = i;", "const int position = i ^ 1;"}, {"running = sum", "running = 1.00000000001 * sum"},
		{"const double running = joined(total, up_to);", "const double running = (float)joined(total, up_to);"},
	} {
		if faults := check(c.wrong, c.by); len(faults) == 0 {
			t.Errorf("%s is not found", c.by)
		}
	}
}

// TestNVRTCOfDoubles: NVIDIA's compiler accepts the programs.
func TestNVRTCOfDoubles(t *testing.T) {
	c := nvrtctest.Open(t)
	p, err := fused.PlanOf(doubles(), nil, fused.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for _, capability := range []int{80, 90} {
		options := nvrtc.Options{Capability: capability, Flags: fused.Options}
		compiled, err := c.Compile(t.Context(), options, p.Sources())
		if err := errors.Join(append(compiled.Refused, err)...); err != nil {
			t.Error(err)
		}
	}
}
