package fuse_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// addRecurrences adds the recurrences of recurrent.py, and their gradients: eight kernels, as two directions are one.
func (k *kernels) addRecurrences(t *testing.T, rows, steps int) {
	t.Helper()
	model := load(t, "../testdata/layers/recurrent.onnx")
	sizes := shapes.Sizes{"B": rows, "T_mel": steps, "T_wav": 256 * (steps - 1)}
	r, g, regions := partition(t, model, sizes)
	m, _ := results(t, model, r, g, regions, batch(r, sizes))
	k.add(t, slices.DeleteFunc(slices.Clone(regions), func(r *fuse.Region) bool {
		_, ok := r.Work.(*fuse.RecurrenceKernel)
		return !ok
	}), m)
}

// TestRecurrences: LSTMs, GRUs and plain recurrences, with and without biases and projections, forwards and backwards,
// and their gradients are kernels that compute what ONNX Runtime computes step by step, however many blocks meet.
func TestRecurrences(t *testing.T) {
	for _, c := range []struct{ blocks, rows, steps int }{
		{2, 1, 5}, {2, 3, 5}, {2, 6, 5}, {3, 1, 5}, {3, 3, 5}, {3, 6, 5}, {14, 2, 5}, {64, 1, 2}, {64, 2, 2},
	} {
		t.Run(fmt.Sprintf("%d blocks, %d rows", c.blocks, c.rows), func(t *testing.T) {
			k := &kernels{target: cudac.Target{Multiprocessors: cudac.Multiprocessors{Count: c.blocks}}}
			k.addRecurrences(t, c.rows, c.steps)
			if len(k.kernels) != 8 {
				t.Errorf("%d kernels, want 8: %v", len(k.kernels), k.left)
			}
			k.check(t, &emulation{}, 1e-5)
		})
	}
}

// TestBlocksOfRecurrences: a launch has as many blocks as run at the same time on the GPU, and as have units. Where
// that is not possible, a line says why.
func TestBlocksOfRecurrences(t *testing.T) {
	const kibi = 1 << 10
	full := []int{96, 64, 40, 32, 64, 40, 64, 96} // as many as there are units
	few := []int{32, 32, 20, 32, 32, 20, 32, 32}
	for _, c := range []struct {
		name       string
		capability int
		of         cudac.Multiprocessors
		blocks     []int
		left       string
	}{
		{"H200", 90, cudac.Multiprocessors{Count: 132, SharedMemory: 228 * kibi}, full, ""},
		{"not at hand, 9.0", 90, cudac.Multiprocessors{}, full, ""},
		{"A100", 80, cudac.Multiprocessors{Count: 108, SharedMemory: 164 * kibi}, full, ""},
		{"RTX A4000", 86, cudac.Multiprocessors{Count: 48, SharedMemory: 100 * kibi},
			[]int{48, 32, 40, 32, 32, 40, 32, 48}, ""},
		{"not at hand", 0, cudac.Multiprocessors{}, few, ""},
		{"a seventh of an A100", 80, cudac.Multiprocessors{Count: 14, SharedMemory: 164 * kibi},
			[]int{14, 13, 14, 11, 13, 14, 13, 14}, ""},
		{"a seventh of an H200", 90, cudac.Multiprocessors{Count: 16, SharedMemory: 228 * kibi}, few, ""},
		{"one", 80, cudac.Multiprocessors{Count: 1}, []int{1, 1, 1, 1, 1, 1},
			"each of them needs a block, and only 1 run at the same time on this GPU"},
		{"no cooperative launch", 80, cudac.Multiprocessors{Count: 108, Uncooperative: true}, nil,
			"the driver cannot make its blocks run at the same time on this GPU"},
	} {
		k := &kernels{target: cudac.TargetOf(c.capability, c.of)}
		k.addRecurrences(t, 3, 5)
		var blocks []int
		for _, kernel := range k.kernels {
			blocks = append(blocks, kernel.Launches[1].Blocks[0])
		}
		if !slices.Equal(blocks, c.blocks) {
			t.Errorf("%s: %v blocks, want %v", c.name, blocks, c.blocks)
		}
		if left := len(full) - len(c.blocks); k.left[c.left] != left || len(k.left) > min(1, left) {
			t.Errorf("%s: left are %v, want %d: %s", c.name, k.left, left, c.left)
		}
	}
}

// addingUp is a recurrence from start over x, of which each step adds the result of a node that reads the item to the
// absolute value of what it is passed: such steps run one after another.
func addingUp(out string, n *onnxpb.NodeProto) *onnxpb.NodeProto {
	n.Output = []string{"part"}
	return &onnxpb.NodeProto{
		OpType: proto.String("Scan"), Input: []string{"start", "x"}, Output: []string{out},
		Attribute: []*onnxpb.AttributeProto{attribute("num_scan_inputs", 1), {
			Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &onnxpb.GraphProto{
				Name:  proto.String("step"),
				Input: []*onnxpb.ValueInfoProto{info("before", nil), info("item", nil)},
				Node: []*onnxpb.NodeProto{
					n, {OpType: proto.String("Abs"), Input: []string{"before"}, Output: []string{"size"}},
					{OpType: proto.String("Add"), Input: []string{"size", "part"}, Output: []string{"after"}},
				},
				Output: []*onnxpb.ValueInfoProto{info("after", nil)},
			},
		}},
	}
}

// TestPreciseSteps: the functions of a step have no fast forms with larger errors, which a recurrence would repeat.
func TestPreciseSteps(t *testing.T) {
	tanh := &onnxpb.AttributeProto{
		Name: proto.String("approximate"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte("tanh"),
	}
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name:  proto.String("steps"),
			Input: []*onnxpb.ValueInfoProto{info("start", []int{2, 4}), info("x", []int{5, 2, 4})},
		},
	}
	for i, f := range []*onnxpb.NodeProto{
		{OpType: proto.String("Sigmoid")}, {OpType: proto.String("Tanh")}, {OpType: proto.String("Softplus")},
		{OpType: proto.String("Gelu")}, {OpType: proto.String("Gelu"), Attribute: []*onnxpb.AttributeProto{tanh}},
		{OpType: proto.String("Exp")}, {OpType: proto.String("Erf")}, {OpType: proto.String("Elu")},
	} {
		f.Input = []string{"item"}
		out := fmt.Sprintf("sum%d", i)
		model.Graph.Node = append(model.Graph.Node, addingUp(out, f))
		model.Graph.Output = append(model.Graph.Output, info(out, nil))
	}
	r, g, regions := partition(t, model, shapes.Sizes{})
	m, _ := results(t, model, r, g, regions, batch(r, nil))
	k := &kernels{}
	k.add(t, regions, m)
	if len(k.kernels) != 2 || len(k.left) > 0 {
		t.Fatalf("%d kernels, want 2 of four recurrences each: %v", len(k.kernels), k.left)
	}
	k.check(t, &emulation{options: []string{"-DFAST_ERROR=0.01f"}}, 1e-5)
}

// TestWideStep: a step that needs too much shared memory with all blocks, each of which has one column of its product,
// has fewer of them.
func TestWideStep(t *testing.T) {
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("wide"),
			Input: []*onnxpb.ValueInfoProto{
				info("start", []int{16, 64}), info("x", []int{3, 16, 2048}), info("w", []int{2048, 64}),
			},
			Output: []*onnxpb.ValueInfoProto{info("last", nil)},
			Node: []*onnxpb.NodeProto{addingUp("last", &onnxpb.NodeProto{
				OpType: proto.String("MatMul"), Input: []string{"item", "w"},
			})},
		},
	}
	r, g, regions := partition(t, model, shapes.Sizes{})
	m, _ := results(t, model, r, g, regions, batch(r, nil))
	k := &kernels{target: cudac.TargetOf(90, cudac.Multiprocessors{})}
	k.add(t, regions, m)
	if len(k.kernels) != 1 || k.kernels[0].Launches[1].Blocks[0] != 32 {
		t.Fatalf("%d kernels, want one of 32 blocks: %v", len(k.kernels), k.left)
	}
}
