package ort_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// products is a call that multiplies the first elements of x and of 2x with x.
func products(transposed [2]bool) ort.KernelCall {
	const count, workspace = 2, 64
	return ort.KernelCall{Inputs: 2 * count, Scratch: workspace + 256,
		Outputs: []ort.KernelOutput{
			{DType: manifest.F32, Shape: []int{1, 2}}, {DType: manifest.F32, Shape: []int{1, 2}},
		},
		Launches: []ort.KernelLaunch{
			{Function: orttest.Addresses, Grid: [3]int{1, 1, 1}, Block: 3 * count, Arguments: []int{0}},
			{Products: &ort.Products{
				DType: manifest.F32, Count: count, Rows: 1, Inner: 2, Columns: 2, Transposed: transposed,
				Workspace: workspace,
			}},
		}}
}

// productsConfig is that of a graph with the results a and b of the call.
func productsConfig(t *testing.T, call ort.KernelCall) ort.SessionConfig {
	t.Helper()
	return ort.SessionConfig{Threads: 1, Kernels: &ort.Kernels{
		Launch: orttest.Launch, Multiplier: orttest.Multiplier, Calls: []ort.KernelCall{call, double},
	},
		Model: kernelModel(t,
			map[string]onnxpb.TensorProto_DataType{"a": onnxpb.TensorProto_FLOAT, "b": onnxpb.TensorProto_FLOAT},
			callNode(double, 1, []string{"x"}, []string{"2x"}),
			callNode(call, 0, []string{"x", "2x", "x", "x"}, []string{"a", "b"}))}
}

// TestProducts: the library multiplies rows, whatever the order in which an operand is in memory.
func TestProducts(t *testing.T) {
	for _, c := range []struct {
		transposed [2]bool
		want       [2]float32 // of [1 2] times [1 2; 3 5], or its transpose
	}{
		{[2]bool{}, [2]float32{7, 12}}, {[2]bool{false, true}, [2]float32{5, 13}},
		{[2]bool{true, false}, [2]float32{7, 12}}, {[2]bool{true, true}, [2]float32{5, 13}},
	} {
		t.Run(fmt.Sprint(c.transposed), func(t *testing.T) {
			s := open(t, productsConfig(t, products(c.transposed)))
			x, a, b := floats(t, []int{4}), floats(t, []int{1, 2}), floats(t, []int{1, 2})
			bound := ready(t, s, map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"a": a, "b": b})
			copy(ort.View[float32](x.Bytes()), []float32{1, 2, 3, 5})
			if err := bound.Run(nil); err != nil {
				t.Fatal(err)
			}
			for i, out := range []*ort.Tensor{a, b} {
				want := []float32{c.want[0] * float32(i+1), c.want[1] * float32(i+1)}
				if got := ort.View[float32](out.Bytes()); !slices.Equal(got, want) {
					t.Errorf("product %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}

// TestPlannedProduct: a planned product may add its bias to each row, and a residual or GELU of that is another output.
func TestPlannedProduct(t *testing.T) {
	for i := range 60 {
		sizes := [][3]int{{2, 2, 2}, {2, 1, 4}, {4, 1, 2}}[i%3]
		p := ort.Products{
			DType: manifest.F32, Count: 1, Rows: sizes[0], Inner: sizes[1], Columns: sizes[2],
			Transposed: [2]bool{i/3%2 == 1, i/6%2 == 1}, Planned: true,
		}
		p.Bias, p.Residual, p.Gelu = i/12%2 == 1 || i/12 == 4, i/12 == 2 || i/12 == 3, i/12 == 4
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) { checkPlanned(t, p) })
	}
}

func checkPlanned(t *testing.T, p ort.Products) {
	rows, inner, columns, transposed := p.Rows, p.Inner, p.Columns, p.Transposed
	call := ort.KernelCall{
		Scratch: 256, Outputs: []ort.KernelOutput{{DType: manifest.F32, Shape: []int{rows, columns}}},
		Launches: []ort.KernelLaunch{{Products: &p}},
	}
	in := []string{"x", "2x"}
	if p.Bias {
		in = append(in, "x")
	}
	if p.Residual {
		in = append(in, "x, x")
	}
	call.Inputs = len(in)
	results := []string{"y"}
	if p.Gelu {
		call.Outputs, results = append(call.Outputs, call.Outputs[0]), []string{"y", "sum"}
	}
	if err := orttest.Multiplier.CanCompute(call); err != nil {
		t.Fatal(err)
	}
	types := map[string]onnxpb.TensorProto_DataType{}
	outputs := map[string]*ort.Tensor{}
	for _, name := range results {
		types[name], outputs[name] = onnxpb.TensorProto_FLOAT, floats(t, []int{rows, columns})
	}
	twice := &onnxpb.NodeProto{OpType: proto.String("Concat"), Input: []string{"x", "x"}, Output: []string{"x, x"},
		Attribute: []*onnxpb.AttributeProto{
			{Name: proto.String("axis"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0)},
		}}
	node := callNode(call, 0, in, results)
	s := open(t, ort.SessionConfig{Threads: 1, Kernels: &ort.Kernels{
		Launch: orttest.Launch, Multiplier: orttest.Multiplier, Calls: []ort.KernelCall{call, double},
	},
		Model: kernelModel(t, types, callNode(double, 1, []string{"x"}, []string{"2x"}), twice, node)})
	x := floats(t, []int{4})
	bound := ready(t, s, map[string]*ort.Tensor{"x": x}, outputs)
	values := []float32{0.1, 0.7, -0.4, 0.5}
	copy(ort.View[float32](x.Bytes()), values)
	for range 2 { // the second run has a plan
		if err := bound.Run(nil); err != nil {
			t.Fatal(err)
		}
	}
	at := func(i, j, rows, columns int, turned bool) float64 {
		if turned {
			return float64(values[j*rows+i])
		}
		return float64(values[i*columns+j])
	}
	for i := range rows {
		for j := range columns {
			want := 0.0
			if p.Bias {
				want = float64(values[j])
			}
			if p.Residual {
				want += float64(values[(i*columns+j)%len(values)])
			}
			for k := range inner {
				want += at(i, k, rows, inner, transposed[0]) * 2 * at(k, j, inner, columns, transposed[1])
			}
			wants := map[string]float64{"y": want, "sum": want}
			if p.Gelu {
				wants["y"] = want * 0.5 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(want+0.044715*want*want*want)))
			}
			for name, out := range outputs {
				if got := float64(ort.View[float32](out.Bytes())[i*columns+j]); math.Abs(got-wants[name]) > 1e-6 {
					t.Errorf("%s[%d, %d]: %g, want %g", name, i, j, got, wants[name])
				}
			}
		}
	}
}

// TestRefusedProduct: what the library cannot compute is known before a session has it.
func TestRefusedProduct(t *testing.T) {
	call := ort.KernelCall{
		Inputs: 3, Scratch: 256, Outputs: []ort.KernelOutput{{DType: manifest.F32, Shape: []int{2, 7}}},
		Launches: []ort.KernelLaunch{{Products: &ort.Products{
			DType: manifest.F32, Count: 1, Rows: 2, Inner: 2, Columns: 7, Planned: true, Bias: true,
		}}},
	}
	if err := orttest.Multiplier.CanCompute(call); err == nil || !strings.Contains(err.Error(), "no algorithm") {
		t.Error(err)
	}
}

// TestWrongProducts: a session refuses products that the library could not compute.
func TestWrongProducts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ort.Kernels)
		want   string
	}{
		"no library": {func(k *ort.Kernels) { k.Multiplier = nil }, "kernel call 0: products without a multiplier"},
		"type": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.DType = manifest.I32 },
			`launch 1: products of "i32"`,
		},
		"no rows": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Rows = 0 }, "2 products of 0 x 2 and 2 x 2",
		},
		"workspace": {
			func(k *ort.Kernels) { k.Calls[0].Scratch = 8 },
			"8 bytes of scratch memory, 64 of them before the workspace, for 2 products",
		},
		"biases": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Bias = true },
			"a bias or a residual of a product that is not planned",
		},
		"residuals": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Residual = true },
			"a bias or a residual of a product that is not planned",
		},
		"two planned": {func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Planned = true }, "2 planned products"},
		"no bias": {func(k *ort.Kernels) {
			p := k.Calls[0].Launches[1].Products
			k.Calls[0].Inputs, p.Count, p.Planned, p.Bias = 2, 1, true, true
		}, "a planned product has 2 inputs"},
		"gelu": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Gelu = true },
			"GELU of products without a bias, or with a residual",
		},
		"tables": {
			func(k *ort.Kernels) { k.Calls[0].Launches[1].Products.Workspace = 47 }, "47 of them before the workspace",
		},
	} {
		config := productsConfig(t, products([2]bool{}))
		c.change(config.Kernels)
		s, err := ort.NewSession(config)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
