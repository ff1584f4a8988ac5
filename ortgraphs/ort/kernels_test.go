package ort_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// kernelModel is a graph from the f32 vector x of four elements to outputs of no declared shape.
func kernelModel(t testing.TB, outputs map[string]onnxpb.TensorProto_DataType, nodes ...*onnxpb.NodeProto) []byte {
	t.Helper()
	value := func(name string, element onnxpb.TensorProto_DataType, sizes ...int64) *onnxpb.ValueInfoProto {
		tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(element))}
		for _, n := range sizes {
			tensor.Shape = &onnxpb.TensorShapeProto{Dim: append(tensor.GetShape().GetDim(),
				&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}})}
		}
		return &onnxpb.ValueInfoProto{
			Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
		}
	}
	graph := &onnxpb.GraphProto{Name: proto.String("kernels"), Node: nodes,
		Input: []*onnxpb.ValueInfoProto{value("x", onnxpb.TensorProto_FLOAT, 4)}}
	for name, element := range outputs {
		graph.Output = append(graph.Output, value(name, element))
	}
	model, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(10), Graph: graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{
			{Domain: proto.String(""), Version: proto.Int64(20)},
			{Domain: proto.String(ort.KernelDomain), Version: proto.Int64(1)},
		}})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// callNode is a node that executes a call.
func callNode(call ort.KernelCall, index int, inputs, outputs []string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String(call.Op()), Domain: proto.String(ort.KernelDomain), Input: inputs, Output: outputs,
		Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String(ort.KernelAttribute), Type: onnxpb.AttributeProto_INT.Enum(),
			I: proto.Int64(int64(index)),
		}},
	}
}

func launch(function uintptr, arguments ...int) ort.KernelLaunch {
	return ort.KernelLaunch{Function: function, Grid: [3]int{2, 1, 1}, Block: 2, Arguments: arguments}
}

var f32x4 = []ort.KernelOutput{{DType: manifest.F32, Shape: []int{4}}}

// addSquare is y + x², with x² in scratch memory.
var addSquare = ort.KernelCall{Inputs: 2, Outputs: f32x4, Scratch: 16,
	Launches: []ort.KernelLaunch{launch(orttest.Square, 0, 3), launch(orttest.Add, 1, 3, 2)}}

// double is x + x.
var double = ort.KernelCall{Inputs: 1, Outputs: f32x4, Launches: []ort.KernelLaunch{launch(orttest.Add, 0, 0, 1)}}

// single returns a graph whose output y is one call of x, with its configuration.
func single(t testing.TB, call ort.KernelCall, inputs ...string) ort.SessionConfig {
	t.Helper()
	if len(inputs) == 0 {
		inputs = slices.Repeat([]string{"x"}, call.Inputs)
	}
	return ort.SessionConfig{Threads: 1, Kernels: &ort.Kernels{Launch: orttest.Launch, Calls: []ort.KernelCall{call}},
		Model: kernelModel(t, map[string]onnxpb.TensorProto_DataType{"y": onnxpb.TensorProto_FLOAT},
			callNode(call, 0, inputs, []string{"y"}))}
}

// TestKernelCalls mixes calls of several output types with a node of ONNX Runtime's own.
func TestKernelCalls(t *testing.T) {
	convert := ort.KernelCall{Inputs: 1, Launches: []ort.KernelLaunch{launch(orttest.Convert, 0, 1, 2, 3)},
		Outputs: []ort.KernelOutput{
			{manifest.I64, []int{2, 2}}, {manifest.Bool, []int{4}}, {manifest.BF16, []int{4, 1}},
		}}
	s := open(t, ort.SessionConfig{Threads: 1,
		Kernels: &ort.Kernels{Launch: orttest.Launch, Calls: []ort.KernelCall{convert, double, addSquare}},
		Model: kernelModel(t, map[string]onnxpb.TensorProto_DataType{
			"i": onnxpb.TensorProto_INT64, "b": onnxpb.TensorProto_BOOL, "h": onnxpb.TensorProto_BFLOAT16},
			callNode(double, 1, []string{"x"}, []string{"2x"}),
			&onnxpb.NodeProto{OpType: proto.String("Neg"), Input: []string{"2x"}, Output: []string{"-2x"}},
			callNode(addSquare, 2, []string{"x", "-2x"}, []string{"x²-2x"}),
			callNode(convert, 0, []string{"x²-2x"}, []string{"i", "b", "h"}),
		)})
	for _, out := range s.Outputs() {
		want := map[string]manifest.Shape{
			"i": {manifest.Fixed(2), manifest.Fixed(2)}, "b": {manifest.Fixed(4)},
			"h": {manifest.Fixed(4), manifest.Fixed(1)},
		}
		if !reflect.DeepEqual(out.Shape, want[out.Name]) {
			t.Errorf("output %s has the shape %v, want %v", out.Name, out.Shape, want[out.Name])
		}
	}
	x := floats(t, []int{4})
	i, b := ints(t, []int{2, 2}), filled[uint8](t, manifest.Bool, []int{4}, nil)
	h := filled[uint16](t, manifest.BF16, []int{4, 1}, nil)
	bound := ready(t, s, map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"i": i, "b": b, "h": h})
	for range 3 { // the scratch memory is used again
		copy(ort.View[float32](x.Bytes()), []float32{1, 3, -1, 0})
		if err := bound.Run(nil); err != nil {
			t.Fatal(err)
		}
		if got, want := ort.View[int64](i.Bytes()), []int64{-1, 3, 3, 0}; !slices.Equal(got, want) {
			t.Errorf("I64: %v, want %v", got, want)
		}
		if got, want := b.Bytes(), []byte{0, 1, 1, 0}; !slices.Equal(got, want) {
			t.Errorf("Bool: %v, want %v", got, want)
		}
		if got, want := ort.View[uint16](h.Bytes()), []uint16{0xbf80, 0x4040, 0x4040, 0}; !slices.Equal(got, want) {
			t.Errorf("BF16: %x, want %x", got, want)
		}
	}
}

// An empty tensor may have no memory.
func TestKernelCallOfAnEmptyTensor(t *testing.T) {
	empty := ort.KernelCall{
		Inputs: 1, Outputs: []ort.KernelOutput{{manifest.F32, []int{0}}},
		Launches: []ort.KernelLaunch{launch(orttest.Nothing, 1)},
	}
	last := ort.KernelCall{Inputs: 2, Outputs: f32x4, Launches: []ort.KernelLaunch{
		launch(orttest.Nothing, 1), launch(orttest.Square, 0, 2),
	}}
	s := open(t, ort.SessionConfig{
		Threads: 1, Kernels: &ort.Kernels{Launch: orttest.Launch, Calls: []ort.KernelCall{empty, last}},
		Model: kernelModel(t, map[string]onnxpb.TensorProto_DataType{"y": onnxpb.TensorProto_FLOAT},
			callNode(empty, 0, []string{"x"}, []string{"none"}),
			callNode(last, 1, []string{"x", "none"}, []string{"y"})),
	})
	y := floats(t, []int{4})
	if err := ready(
		t, s, map[string]*ort.Tensor{"x": floats(t, []int{4}, 1, 2, 3, 4)}, map[string]*ort.Tensor{"y": y},
	).Run(nil); err != nil {
		t.Fatal(err)
	}
	if got := ort.View[float32](y.Bytes()); !slices.Equal(got, []float32{1, 4, 9, 16}) {
		t.Errorf("squares: %v", got)
	}
}

func TestKernelsRefused(t *testing.T) {
	change := func(f func(*ort.KernelCall)) ort.KernelCall {
		c := addSquare
		c.Launches = slices.Clone(c.Launches)
		f(&c)
		return c
	}
	l := func(f func(*ort.KernelLaunch)) ort.KernelCall {
		return change(func(c *ort.KernelCall) { f(&c.Launches[1]) })
	}
	for _, tt := range []struct {
		name string
		call ort.KernelCall
		want string
	}{
		{"no inputs", change(func(c *ort.KernelCall) { c.Inputs = 0 }),
			"0 inputs, but a node of ONNX Runtime has at least one"},
		{"no outputs", change(func(c *ort.KernelCall) { c.Outputs = nil }), "no outputs"},
		{"negative scratch", change(func(c *ort.KernelCall) { c.Scratch = -1 }), "-1 bytes of scratch memory"},
		{"too many inputs", change(func(c *ort.KernelCall) { c.Inputs = 255 }),
			"257 pointers, at most 256 are possible"},
		{"no launches", change(func(c *ort.KernelCall) { c.Launches = nil }), "no launches"},
		{"unknown type", change(func(c *ort.KernelCall) { c.Outputs = []ort.KernelOutput{{"f8", nil}} }),
			`output 0: unknown element type "f8"`},
		{"negative dimension",
			change(func(c *ort.KernelCall) { c.Outputs = []ort.KernelOutput{{manifest.F32, []int{1, -1}}} }),
			"output 0: dimension -1 is negative"},
		{"no function", l(func(l *ort.KernelLaunch) { l.Function = 0 }), "launch 1: no function"},
		{"no blocks", l(func(l *ort.KernelLaunch) { l.Grid = [3]int{1, 0, 1} }),
			"launch 1: the grid [1 0 1] is not between 1 and [2147483647 65535 65535]"},
		{"too many threads", l(func(l *ort.KernelLaunch) { l.Block = 1025 }),
			"launch 1: a block of 1025 threads is not between 1 and 1024"},
		{"negative shared memory", l(func(l *ort.KernelLaunch) { l.Shared = -1 }),
			"launch 1: -1 bytes of shared memory"},
		{"too many arguments", l(func(l *ort.KernelLaunch) { l.Arguments = make([]int, 257) }),
			"launch 1: 257 arguments, at most 256 are possible"},
		{"beyond the scratch memory", l(func(l *ort.KernelLaunch) { l.Arguments = []int{0, 4} }),
			"launch 1: argument 1 is pointer 4, but the call has only 4 pointers"},
		{"scratch memory without any", change(func(c *ort.KernelCall) { c.Scratch = 0 }),
			"launch 0: argument 1 is pointer 3, but the call has only 3 pointers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := single(t, addSquare)
			config.Kernels.Calls = append(config.Kernels.Calls, tt.call)
			if _, err := ort.NewSession(config); err == nil || err.Error() != "open graph: kernel call 1: "+tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	config := single(t, addSquare)
	config.Kernels.Launch = 0
	if _, err := ort.NewSession(config); err == nil || err.Error() != "open graph: kernels without a launch function" {
		t.Errorf("no launch function: %v", err)
	}
}

func TestNodesWithoutACall(t *testing.T) {
	i64 := ort.KernelCall{
		Inputs: 1, Outputs: []ort.KernelOutput{{manifest.I64, nil}},
		Launches: []ort.KernelLaunch{launch(orttest.Nothing)},
	}
	pair := ort.KernelCall{
		Inputs: 1, Outputs: slices.Concat(f32x4, f32x4), Launches: []ort.KernelLaunch{launch(orttest.Nothing)},
	}
	bare := callNode(double, 0, []string{"x"}, []string{"y"})
	bare.Attribute = nil
	for _, tt := range []struct {
		name string
		node *onnxpb.NodeProto
		want string
	}{
		{"no attribute", bare, "call"},
		{"beyond the list", callNode(double, 4, []string{"x"}, []string{"y"}),
			"KernelCall_F32: there is no kernel call 4 with these outputs"},
		{"negative", callNode(double, -1, []string{"x"}, []string{"y"}),
			"KernelCall_F32: there is no kernel call -1 with these outputs"},
		{"other outputs", callNode(double, 1, []string{"x"}, []string{"y"}),
			"KernelCall_F32: there is no kernel call 1 with these outputs"},
		{"more inputs", callNode(double, 0, []string{"x", "x"}, []string{"y"}),
			"kernel call 0 has 1 inputs, but its node has 2"},
		{"no inputs", callNode(double, 0, nil, []string{"y"}), "has input size 0 not in range [min=1"},
		{"an input left out", callNode(addSquare, 2, []string{"x", ""}, []string{"y"}),
			"Input0 is absent, but not optional"},
		{"an output left out", callNode(pair, 3, []string{"x"}, []string{"", "y"}),
			"output 0 is marked single but has an empty string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := single(t, double)
			config.Kernels.Calls = append(config.Kernels.Calls, i64, addSquare, pair)
			config.Model = kernelModel(t, map[string]onnxpb.TensorProto_DataType{"y": onnxpb.TensorProto_FLOAT},
				tt.node)
			if _, err := ort.NewSession(config); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	config := single(t, double)
	config.Kernels = nil
	if _, err := ort.NewSession(config); err == nil || !strings.Contains(err.Error(), ort.KernelDomain) {
		t.Errorf("a graph without its kernels: %v", err)
	}
}

func TestLaunchErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		function uintptr
		want     string
		memory   bool
	}{
		{"fault", orttest.IllegalAddress, "kernel call 0, launch 1: CUDA failure 700: cuLaunchKernel", false},
		{"memory", orttest.OutOfMemory, "kernel call 0, launch 1: CUDA failure 2: cuLaunchKernel", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := addSquare
			call.Launches = []ort.KernelLaunch{call.Launches[0], launch(tt.function)}
			s := open(t, single(t, call))
			b := ready(t, s, map[string]*ort.Tensor{"x": floats(t, []int{4})},
				map[string]*ort.Tensor{"y": floats(t, []int{4})})
			for range 2 {
				err := b.Run(nil)
				if err == nil || !strings.Contains(err.Error(), tt.want) ||
					errors.Is(err, ort.ErrOutOfMemory) != tt.memory || errors.Is(err, ort.ErrLaunch) == tt.memory {
					t.Errorf("error %v, want %s", err, tt.want)
				}
			}
		})
	}
}

// TestScratchMemoryBeyondTheLimit: ONNX Runtime throws a C++ exception through the C code, which must neither end the
// process nor leak what it holds.
func TestScratchMemoryBeyondTheLimit(t *testing.T) {
	arena, err := ort.NewArena(ort.Host, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	call := addSquare
	call.Scratch = 2 << 20
	config := single(t, call)
	config.Arena = arena
	s := open(t, config)
	defer s.Close()
	b := ready(t, s, map[string]*ort.Tensor{"x": floats(t, []int{4})}, map[string]*ort.Tensor{"y": floats(t, []int{4})})
	for range 100 {
		if err := b.Run(nil); !errors.Is(err, ort.ErrOutOfMemory) {
			t.Fatalf("error %v", err)
		}
	}

	config = single(t, addSquare)
	config.Arena = arena
	other := open(t, config)
	defer other.Close()
	y := floats(t, []int{4})
	err = ready(t, other, map[string]*ort.Tensor{"x": floats(t, []int{4}, 1, 2, 3, 4)},
		map[string]*ort.Tensor{"y": y}).Run(
		nil)
	if got := ort.View[float32](y.Bytes()); err != nil || !slices.Equal(got, []float32{2, 6, 12, 20}) {
		t.Errorf("a run with less memory: %v (%v)", got, err)
	}
	if n, err := arena.Bytes(); n == 0 || n > 1<<20 || err != nil {
		t.Errorf("the scratch memory is not from the arena: it has %d bytes (%v)", n, err)
	}
}

// TestSessionsWithKernels: each session has its own calls, even for the same node, and outlives the others.
func TestSessionsWithKernels(t *testing.T) {
	square := double
	square.Launches = []ort.KernelLaunch{launch(orttest.Square, 0, 1)}
	calls := []struct {
		call ort.KernelCall
		want float32
	}{{double, 6}, {square, 9}}
	var wg sync.WaitGroup
	for _, c := range slices.Repeat(calls, 2) {
		x, y := floats(t, []int{4}, 3, 3, 3, 3), floats(t, []int{4})
		config := single(t, c.call)
		wg.Go(func() {
			for range 3 {
				s, err := ort.NewSession(config)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				b, err := s.NewBinding()
				if err != nil {
					t.Error(err)
					return
				}
				b.BindInput("x", x)
				b.BindOutput("y", y)
				for range 50 {
					clear(y.Bytes())
					if err := b.Run(nil); err != nil || ort.View[float32](y.Bytes())[3] != c.want {
						t.Errorf("%v, want %v (%v)", ort.View[float32](y.Bytes()), c.want, err)
						return
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Each session has 2 MB of descriptions.
func TestKernelsAreFreed(t *testing.T) {
	config := single(t, double)
	long := double
	long.Launches = []ort.KernelLaunch{launch(orttest.Nothing, make([]int, 256)...)}
	config.Kernels.Calls = append(config.Kernels.Calls, slices.Repeat([]ort.KernelCall{long}, 2000)...)
	cycle := func(n int) {
		for range n {
			s, err := ort.NewSession(config)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
	}
	cycle(2)
	before := ort.Resident(t)
	cycle(10)
	if grown := ort.Resident(t) - before; grown > 12<<20 {
		t.Errorf("10 sessions leave %d MB", grown>>20)
	}
}

// The cost of a call in addition to BenchmarkRun.
func BenchmarkKernelCall(b *testing.B) {
	x := floats(b, []int{4})
	bound := ready(b, open(b, single(b, addSquare)), map[string]*ort.Tensor{"x": x},
		map[string]*ort.Tensor{"y": floats(b, []int{4})})
	b.ReportAllocs()
	for b.Loop() {
		if err := bound.Run(nil); err != nil {
			b.Fatal(err)
		}
	}
}
