package cost_test

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

const (
	f32  = onnxpb.TensorProto_FLOAT
	bf16 = onnxpb.TensorProto_BFLOAT16
)

// graph is a model in the making.
type graph struct{ onnxpb.GraphProto }

func (g *graph) input(name string, t onnxpb.TensorProto_DataType, shape ...int64) string {
	g.Input = append(g.Input, value(name, t, shape))
	return name
}

func (g *graph) output(name string, t onnxpb.TensorProto_DataType, shape ...int64) {
	g.Output = append(g.Output, value(name, t, shape))
}

func value(name string, t onnxpb.TensorProto_DataType, shape []int64) *onnxpb.ValueInfoProto {
	dims := &onnxpb.TensorShapeProto{}
	for _, d := range shape {
		dims.Dim = append(dims.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: dims},
	}}}
}

func (g *graph) node(op, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: &op, Name: &out, Input: in, Output: []string{out}}
	g.Node = append(g.Node, n)
	return n
}

func (g *graph) ints(name string, values ...int64) string {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{int64(len(values))},
		Int64Data: values,
	})
	return name
}

func integer(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INT.Enum(), I: &v}
}

func (g *graph) plan(t *testing.T) *fused.Plan {
	t.Helper()
	g.Name = proto.String("g")
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: &g.GraphProto,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(20)}},
	}
	p, err := fused.PlanOf(model, nil, fused.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func h200(t *testing.T) cost.Settings {
	t.Helper()
	c, ok := cost.CardOf("NVIDIA H200")
	if !ok || c.Bandwidth != 4.8e12 || c.BF16 != 989.4e12 || c.TF32 != 494.7e12 || c.F32 != 67e12 {
		t.Fatalf("%+v", c)
	}
	return cost.Settings{Card: c, TF32: true}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.002*want {
		t.Errorf("%s: %.5f ms, by hand %.5f", what, got, want)
	}
}

func part(p *cost.Prediction, name string) cost.Part {
	i := slices.IndexFunc(p.Parts, func(part cost.Part) bool { return part.Name == name })
	if i < 0 {
		return cost.Part{}
	}
	return p.Parts[i]
}

// sum is a graph that adds two tensors of 2^26 numbers in f32.
func sum() *graph {
	g := &graph{}
	g.input("a", f32, 65536, 1024)
	g.input("b", f32, 65536, 1024)
	g.node("Add", "c", "a", "b")
	g.output("c", f32, 65536, 1024)
	return g
}

// TestBytes: a sum moves 3 x 268,435,456 bytes, at three quarters of 4.8 TB/s. That is near its floor, so nothing is
// named. Without a CUDA graph it takes no longer, since the next launch is queued meanwhile.
func TestBytes(t *testing.T) {
	s := h200(t)
	p := sum().plan(t).Predict(s, nil)
	const floor = 3 * 268435456 / 4.8e12 * 1e3
	near(t, "floor", p.FloorMS, floor)
	near(t, "regions", part(p, cost.Regions).MS, floor/0.75)
	near(t, "launches", part(p, cost.Launches).MS, 0.002)
	near(t, "step", p.MS, floor/0.75+0.002)
	if len(p.Slow) > 0 || p.Launches != 1 || !p.CUDAGraph || p.SlowMS() != 0 {
		t.Errorf("%+v", p)
	}
	s.Uncaptured = "a copy to the host"
	if single := sum().plan(t).Predict(s, nil); single.MS != p.MS || single.CUDAGraph {
		t.Errorf("without a CUDA graph: %+v", single)
	}
	s.UpdateBytes = 4.8e9
	near(t, "update", part(sum().plan(t).Predict(s, nil), cost.Update).MS, 1/0.75)
}

// multiplied is a product of matrices.
func multiplied(t *testing.T, element onnxpb.TensorProto_DataType, rows, inner, columns int64) *fused.Plan {
	t.Helper()
	g := &graph{}
	g.input("a", element, rows, inner)
	g.input("b", element, inner, columns)
	g.node("MatMul", "c", "a", "b")
	g.output("c", element, rows, columns)
	return g.plan(t)
}

// TestOperations: 8,448 x 4,096 results are 66 x 32 squares of 128 x 128, 16 for each of 132 multiprocessors, so all
// are busy.
func TestOperations(t *testing.T) {
	s := h200(t)
	const flops = 2 * 8448 * 4096 * 4096
	for _, c := range []struct {
		element       onnxpb.TensorProto_DataType
		tf32          bool
		peak, reached float64
	}{{bf16, false, 989.4e12, 0.8}, {f32, true, 494.7e12, 0.42}, {f32, false, 67e12, 0.8}} {
		s.TF32 = c.tf32
		p := multiplied(t, c.element, 8448, 4096, 4096).Predict(s, nil)
		near(t, "floor", p.FloorMS, flops/c.peak*1e3)
		near(t, "products", part(p, cost.Products).MS, flops/c.peak/c.reached*1e3)
		if slow := len(p.Slow) > 0; slow != c.tf32 || slow && !strings.Contains(p.Slow[0].Why, "in TF32") {
			t.Errorf("%+v", p.Slow)
		}
	}
}

// TestPlantedCliff: a region without its kernel is named with the reason, and is the only one.
func TestPlantedCliff(t *testing.T) {
	g := sum()
	g.node("Mul", "d", "c", "b")
	g.node("Sub", "e", "d", "a")
	g.Output = nil
	g.output("e", f32, 65536, 1024)
	plan := g.plan(t)
	if p := plan.Predict(h200(t), nil); len(p.Slow) > 0 {
		t.Fatalf("with its kernel: %+v", p.Slow)
	}
	p := plan.Predict(h200(t), map[int]error{0: errors.New("CUDA failure 9")})
	if len(p.Slow) != 1 || !strings.Contains(p.Slow[0].Why, "CUDA failure 9") || p.Slow[0].Mend != cost.Report ||
		p.Slow[0].Kinds[0].Tensors[0] != "e" || p.Slow[0].Kinds[0].Launches != 3 {
		t.Fatalf("%+v", p.Slow)
	}
	near(t, "the slow part", p.SlowMS(), p.MS)
	near(t, "its floor", p.Slow[0].FloorMS, 3*268435456/4.8e12*1e3)
}

// convolved is a convolution of three taps as it is exported.
func convolved(t *testing.T, element onnxpb.TensorProto_DataType, channels int64) *fused.Plan {
	t.Helper()
	const rows, positions = 64, 1024
	g := &graph{}
	g.input("x", element, rows, positions, channels)
	g.input("w", element, 3*channels, channels)
	g.node("Pad", "padded", "x", g.ints("pads", 0, 1, 0, 0, 1, 0))
	var taps []string
	for i, name := range []string{"t0", "t1", "t2"} {
		start, end := g.ints(name+"s", int64(i)), g.ints(name+"e", int64(i)+positions)
		g.node("Slice", name, "padded", start, end, g.ints(name+"a", 1))
		taps = append(taps, name)
	}
	n := g.node("Concat", "windows", taps...)
	n.Attribute = append(n.Attribute, integer("axis", 2))
	g.node("Reshape", "rows", "windows", g.ints("shape", rows*positions, 3*channels))
	g.node("MatMul", "y", "rows", "w")
	g.node("Relu", "z", "y")
	g.output("z", element, rows*positions, channels)
	return g.plan(t)
}

// TestWindows: windows of 100 channels are in memory. The hint fits: with 104, a multiple of 8, there are none.
func TestWindows(t *testing.T) {
	for _, element := range []onnxpb.TensorProto_DataType{bf16, f32} {
		p := convolved(t, element, 100).Predict(h200(t), nil)
		if i := slices.IndexFunc(p.Slow, func(s cost.Slow) bool { return s.Mend == cost.Channels }); i < 0 ||
			!strings.Contains(p.Slow[i].Why, "100 channels are no multiple of 8") || part(p, cost.Convolutions).MS > 0 {
			t.Errorf("%+v", p.Slow)
		}
		mended := convolved(t, element, 104).Predict(h200(t), nil)
		if slices.ContainsFunc(mended.Slow, func(s cost.Slow) bool { return strings.Contains(s.Why, "windows") }) ||
			part(mended, cost.Convolutions).MS == 0 || mended.MS > 0.6*p.MS {
			t.Errorf("%.3f ms with 100 channels, %.3f with 104: %+v", p.MS, mended.MS, mended.Slow)
		}
	}
}

// TestRatesOfConvolutions: 65,536 x 256 results of 768 terms are 512 x 2 squares, 8 for each of 132 multiprocessors but
// for 32. In each precision, the rate is that of its products, in bf16 that of convolutions.
func TestRatesOfConvolutions(t *testing.T) {
	s := h200(t)
	const flops = 2 * 65536 * 256 * 768
	for _, c := range []struct {
		element       onnxpb.TensorProto_DataType
		tf32          bool
		peak, reached float64
	}{{bf16, false, 989.4e12, 0.75}, {f32, true, 494.7e12, 0.7}, {f32, false, 67e12, 0.8}} {
		s.TF32 = c.tf32
		p := convolved(t, c.element, 256).Predict(s, nil)
		near(t, "convolution", part(p, cost.Convolutions).MS, flops/c.peak/c.reached*1056/1024*1e3)
		near(t, "floor", part(p, cost.Convolutions).FloorMS, flops/c.peak*1e3)
	}
}

// attends is attention of 8 heads with so many columns.
func attends(t *testing.T, columns int64) *fused.Plan {
	t.Helper()
	g := &graph{}
	g.input("q", bf16, 128, 448, columns)
	g.input("k", bf16, 128, 448, columns)
	g.input("v", bf16, 128, 448, columns)
	turn := g.node("Transpose", "turned", "k")
	turn.Attribute = append(turn.Attribute, &onnxpb.AttributeProto{
		Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{0, 2, 1},
	})
	g.node("MatMul", "s", "q", "turned")
	cast := g.node("Cast", "wide", "s")
	cast.Attribute = append(cast.Attribute, integer("to", int64(f32)))
	n := g.node("Softmax", "p", "wide")
	n.Attribute = append(n.Attribute, integer("axis", 2))
	cast = g.node("Cast", "narrow", "p")
	cast.Attribute = append(cast.Attribute, integer("to", int64(bf16)))
	g.node("MatMul", "o", "narrow", "v")
	g.output("o", bf16, 128, 448, columns)
	return g.plan(t)
}

// TestHeads: heads of 40 columns have no kernel; the hint fits, with 48 they do.
func TestHeads(t *testing.T) {
	p := attends(t, 40).Predict(h200(t), nil)
	if len(p.Slow) == 0 || p.Slow[0].Mend != cost.HeadColumns || part(p, cost.Attention).MS > 0 {
		t.Errorf("%+v", p.Slow)
	}
	mended := attends(t, 48).Predict(h200(t), nil)
	if mended.SlowMS() > 0 || part(mended, cost.Attention).MS == 0 || mended.MS > 0.7*p.MS {
		t.Errorf("%.3f ms with 40 columns, %.3f with 48: %+v", p.MS, mended.MS, mended.Slow)
	}
}

// TestUncaptured: small kernels that are launched one by one are named with what keeps the graph out of a CUDA graph.
func TestUncaptured(t *testing.T) {
	small := func() *fused.Plan { return multiplied(t, bf16, 128, 128, 128) }
	if p := small().Predict(h200(t), nil); len(p.Slow) != 1 || !p.Slow[0].Small || p.Slow[0].Mend != cost.MoreRows {
		t.Errorf("%+v", p.Slow)
	}
	s := h200(t)
	s.Uncaptured = "a copy to the host"
	p := small().Predict(s, nil)
	if len(p.Slow) != 1 || p.Slow[0].Small || p.Slow[0].Mend != cost.Capture ||
		!strings.HasSuffix(p.Slow[0].Why, ": a copy to the host") {
		t.Errorf("%+v", p.Slow)
	}
	near(t, "step", p.MS, 0.005)
}

// TestMoreRows: the hint fits: four times the rows of a product with few results take less than four times as long. A
// gradient of weights, whose sum is what grows, has another one.
func TestMoreRows(t *testing.T) {
	p := multiplied(t, bf16, 2048, 1024, 512).Predict(h200(t), nil)
	if len(p.Slow) != 1 || p.Slow[0].Mend != cost.MoreRows {
		t.Errorf("%+v", p.Slow)
	}
	if more := multiplied(t, bf16, 8192, 1024, 512).Predict(h200(t), nil); more.MS > 3*p.MS {
		t.Errorf("2,048 rows take %.4f ms, 8,192 %.4f", p.MS, more.MS)
	}
	p = multiplied(t, bf16, 512, 8192, 768).Predict(h200(t), nil)
	if len(p.Slow) != 1 || p.Slow[0].Mend != cost.Nothing || !strings.Contains(p.Slow[0].Why, "gradients of weights") {
		t.Errorf("%+v", p.Slow)
	}
}

// TestRecurrence: the launches of a recurrence that no kernel computes grow with its steps, and it is named. With
// kernels, the time grows, and nothing is.
func TestRecurrence(t *testing.T) {
	data, err := os.ReadFile("../../testdata/recurrences/PackedRows.onnx")
	if err != nil {
		t.Fatal(err)
	}
	model := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, model); err != nil {
		t.Fatal(err)
	}
	predict := func(steps int) *cost.Prediction {
		plan, err := fused.PlanOf(model, map[string]int{"B": 3, "T": steps}, fused.Form{})
		if err != nil {
			t.Fatal(err)
		}
		return plan.Predict(h200(t), nil)
	}
	short, long := predict(50), predict(1050)
	if grown := (long.MS - short.MS) / 1000; grown < 2*0.0045 || grown > 2.2*0.0045 || !long.CUDAGraph ||
		slices.ContainsFunc(long.Slow, func(s cost.Slow) bool { return s.Mend == cost.NoRecurrence }) {
		t.Errorf("a step of the kernels takes %.5f ms: %+v", grown, long)
	}
	for _, n := range model.Graph.Node {
		for _, a := range n.Attribute {
			for _, inner := range a.GetG().GetNode() {
				if inner.GetOpType() == "Sigmoid" {
					inner.OpType = proto.String("Softmax") // along rows, which a kernel of recurrences does not compute
				}
			}
		}
	}
	var all []*cost.Prediction
	for _, steps := range []int{50, 100, 150} {
		plan, err := fused.PlanOf(model, map[string]int{"B": 3, "T": steps}, fused.Form{})
		if err != nil {
			t.Fatal(err)
		}
		p := plan.Predict(h200(t), nil)
		if p.CUDAGraph || !slices.ContainsFunc(p.Slow, func(s cost.Slow) bool {
			return s.Mend == cost.NoRecurrence && s.MS > 0.9*p.MS
		}) {
			t.Errorf("%+v", p)
		}
		all = append(all, p)
	}
	if first, second := all[1].Launches-all[0].Launches, all[2].Launches-all[1].Launches; first != second ||
		first < 50*10 {
		t.Errorf("50 steps more are %d and %d launches", first, second)
	}
}

// TestCards: names as the driver and as people have them; a part of a card, or another model, has no figures.
func TestCards(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H200": "H200", "h200": "H200", "NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100 PCIe",
		"NVIDIA A100-SXM4-80GB": "A100 80GB", "a100": "A100 80GB", "NVIDIA GeForce RTX 4090": "RTX 4090",
		"rtx-4090": "RTX 4090", "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada", "NVIDIA L40S": "L40S",
		"NVIDIA H200 MIG 1g.18gb": "", "NVIDIA GeForce RTX 4090 Laptop GPU": "", "": "", "NVIDIA": "", "TITAN V": "",
	} {
		if c, ok := cost.CardOf(name); c.Name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", name, c.Name, want)
		}
	}
	seen := map[string]bool{}
	for _, name := range cost.Names() {
		c, ok := cost.CardOf(name)
		if !ok || seen[name] || c.Name != name || c.Bandwidth < 1e11 || c.BF16 < c.TF32 || c.TF32 < c.F32 ||
			c.Multiprocessors == 0 || c.Capability < 80 || c.Cache == 0 {
			t.Errorf("%q: %+v", name, c)
		}
		seen[name] = true
	}
}

// TestRemedies: there are words for whatever can be done.
func TestRemedies(t *testing.T) {
	for _, m := range []cost.Mend{
		cost.Nothing, cost.UseBF16, cost.BF16Attention, cost.MoreRows, cost.Channels, cost.Aligned, cost.Wider,
		cost.HeadColumns, cost.PlainScores, cost.NoRecurrence, cost.Capture, cost.Report,
	} {
		if m.String() == "" {
			t.Errorf("%q has no words", string(m))
		}
	}
}
