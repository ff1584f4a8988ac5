package cost_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// TestDoubles: functions in f64 are arithmetic, of which a GPU for graphics has little, and CumSum is one pass over
// memory.
func TestDoubles(t *testing.T) {
	const f64 = onnxpb.TensorProto_DOUBLE
	ms := func(kind onnxpb.TensorProto_DataType, op, card string) (ms float64) {
		g := &graph{}
		x := g.input("x", kind, 16, 4000, 256)
		in := []string{x}
		if op == "CumSum" {
			in = append(in, g.ints("axis", 1))
		}
		g.node(op, "y", in...)
		g.output("y", kind, 16, 4000, 256)
		c, ok := cost.CardOf(card)
		if !ok {
			t.Fatal(card)
		}
		plan := g.plan(t)
		if len(plan.Left) > 0 {
			t.Fatal(plan.Left)
		}
		for _, p := range plan.Predict(cost.Settings{Card: c}, nil).Parts {
			if p.Name == cost.Regions {
				ms = p.MS
			}
		}
		return ms
	}
	const bytes = 2 * 4 * 16 * 4000 * 256
	for name, c := range map[string]struct{ got, want float64 }{
		"CumSum in f32 on an H200":  {ms(f32, "CumSum", "H200"), bytes / 4.8e12 / 0.75 * 1e3},
		"Exp in f64 on an H200":     {ms(f64, "Exp", "H200"), 2 * bytes / 4.8e12 / 0.75 * 1e3},
		"Exp in f64 on an RTX 4090": {ms(f64, "Exp", "RTX 4090"), 16 * 4000 * 256 * 8 * 3 * 64 / 41.3e12 / 0.8 * 1e3},
	} {
		if math.Abs(c.got/c.want-1) > 0.05 {
			t.Errorf("%s: %.4f ms, want %.4f", name, c.got, c.want)
		}
	}
}

// TestOwnSteps: steps in which no block waits for another one are predicted with less time than those of products.
func TestOwnSteps(t *testing.T) {
	const steps = 1000
	for op, step := range map[string]float64{"Max": 0.6e-3, "MatMul": 4.5e-3} {
		body := &graph{}
		carry := body.input("carry", f32, 32, 32)
		body.input("item", f32, 32, 32)
		body.node(op, "product", carry, "weight")
		body.node("Add", "next", "product", "item")
		body.node("Identity", "out", "next")
		body.output("next", f32, 32, 32)
		body.output("out", f32, 32, 32)
		g := &graph{}
		n := g.node("Scan", "last", g.input("first", f32, 32, 32), g.input("items", f32, steps, 32, 32))
		g.input("weight", f32, 32, 32)
		n.Output = append(n.Output, "all")
		n.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &body.GraphProto},
			{Name: proto.String("num_scan_inputs"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(1)},
		}
		g.output("all", f32, steps, 32, 32)
		plan := g.plan(t)
		if len(plan.Left) > 0 {
			t.Fatal(plan.Left)
		}
		if p := plan.Predict(h200(t), nil); math.Abs(p.MS/(step*steps)-1) > 0.05 {
			t.Errorf("steps of %s take %.3f ms, want %.3f", op, p.MS, step*steps)
		}
	}
}

// TestStepsAtOnce: steps that need not run one after another are predicted as one pass over memory. A GPU for graphics
// takes longer to combine them in f64.
func TestStepsAtOnce(t *testing.T) {
	const steps = 1000
	ms := func(card string) float64 {
		body := &graph{}
		carry := body.input("carry", f32, 16, 256)
		body.node("Mul", "part", carry, body.input("slope", f32, 16, 256))
		body.node("Add", "next", "part", body.input("item", f32, 16, 256))
		body.node("Identity", "out", carry)
		body.output("next", f32, 16, 256)
		body.output("out", f32, 16, 256)
		g := &graph{}
		n := g.node("Scan", "last", g.input("first", f32, 16, 256), g.input("slopes", f32, steps, 16, 256),
			g.input("items", f32, steps, 16, 256))
		n.Output = append(n.Output, "all")
		n.Attribute = []*onnxpb.AttributeProto{
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &body.GraphProto},
			{Name: proto.String("num_scan_inputs"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(2)},
		}
		g.output("all", f32, steps, 16, 256)
		c, ok := cost.CardOf(card)
		if !ok {
			t.Fatal(card)
		}
		for _, p := range g.plan(t).Predict(cost.Settings{Card: c}, nil).Parts {
			if p.Name == cost.Regions {
				return p.MS
			}
		}
		return 0
	}
	const elements = steps * 16 * 256
	for card, want := range map[string]float64{
		"H200": 3 * 4 * elements / 4.8e12 / 0.75 * 1e3, "RTX 4090": elements * 14 * 64 / 41.3e12 / 0.8 * 1e3,
	} {
		if got := ms(card); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%s: %.4f ms, want %.4f", card, got, want)
		}
	}
}
