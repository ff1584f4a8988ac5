package ort_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestRunInPlaceOfCallersMemory(t *testing.T) {
	const n = 40000
	x, y := floats(t, []int{n}), floats(t, []int{n})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": y})
	in, out := ort.View[float32](x.Bytes()), ort.View[float32](y.Bytes())
	for _, v := range []float32{41, 6} { // the second run must see the new data without a new bind
		in[n-1] = v
		if err := b.Run(nil); err != nil {
			t.Fatal(err)
		}
		if out[n-1] != v+1 || out[0] != 1 {
			t.Errorf("%v + 1 = %v, 0 + 1 = %v", v, out[n-1], out[0])
		}
	}
}

func TestModelBytes(t *testing.T) {
	model, err := os.ReadFile("testdata/add_one.onnx")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, ort.SessionConfig{Model: model, Name: "inc"})
	if s.Name() != "inc" {
		t.Error(s.Name())
	}
	if err := addOne(s); err != nil {
		t.Error(err)
	}
}

// All element types pass unchanged: 1.0 or 1 as bytes.
func TestElementTypes(t *testing.T) {
	s := graph(t, "types")
	b := binding(t, s)
	mem := buffer(t, 1<<12).Bytes()
	next := func(d manifest.DType) *ort.Tensor {
		x, err := ort.NewTensor(mem, d, []int{1, 3, 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		mem = mem[(len(x.Bytes())+7)&^7:]
		return x
	}
	var want []*ort.Tensor
	got := map[*ort.Tensor]*ort.Tensor{}
	for _, info := range s.Inputs() {
		x, y := next(info.DType), next(info.DType)
		for i := range x.Bytes() {
			x.Bytes()[i] = 1
		}
		b.BindInput(info.Name, x)
		b.BindOutput(info.Name+"_out", y)
		want, got[x] = append(want, x), y
	}
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	for _, x := range want {
		if !slices.Equal(got[x].Bytes(), x.Bytes()) {
			t.Errorf("%s: % x", x.DType(), got[x].Bytes())
		}
	}
}

// Elementwise graphs may update weights in place. With 70000 elements, the library splits the work.
func TestOutputOnInput(t *testing.T) {
	const n = 70000
	s := open(t, ort.SessionConfig{Path: "testdata/sgd.onnx", Threads: 2})
	w, grad, lr := floats(t, []int{n}), floats(t, []int{n}), floats(t, nil, 0.5)
	for i := range n {
		ort.View[float32](w.Bytes())[i] = float32(i)
		ort.View[float32](grad.Bytes())[i] = 2
	}
	inputs := map[string]*ort.Tensor{"w": w, "grad.w": grad, "lr": lr}
	b := ready(t, s, inputs, map[string]*ort.Tensor{"updated": w})
	for range 3 {
		if err := b.Run(nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range ort.View[float32](w.Bytes()) {
		if v != float32(i)-3 {
			t.Fatalf("w[%d] = %v, want %d", i, v, i-3)
		}
	}
}

func TestRebind(t *testing.T) {
	x, y := floats(t, []int{1}, 1), floats(t, []int{1})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": y})
	if err := errors.Join(b.BindInput("x", floats(t, []int{2}, 5, 6)), b.Run(nil)); err == nil {
		t.Error("a result of two elements went into a tensor of one")
	}
	longer := floats(t, []int{2})
	if err := errors.Join(b.BindOutput("y", longer), b.Run(nil)); err != nil {
		t.Fatal(err)
	}
	if got := ort.View[float32](longer.Bytes()); got[0] != 6 || got[1] != 7 {
		t.Error(got)
	}
}

// A binding has its own reference to the bound tensors.
func TestTensorClosedAfterBind(t *testing.T) {
	x, y := floats(t, []int{1}, 41), floats(t, []int{1})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": y})
	if err := errors.Join(x.Close(), y.Close(), b.Run(nil)); err != nil {
		t.Fatal(err)
	}
	if got := ort.View[float32](y.Bytes())[0]; got != 42 {
		t.Error(got)
	}
}

func TestFailedBindIsFinal(t *testing.T) {
	s := graph(t, "types")
	closed := floats(t, []int{1, 3, 1})
	closed.Close()
	for _, tt := range []struct {
		name  string
		input string
		x     *ort.Tensor
		want  string
	}{
		{
			"name", "f31", floats(t, []int{1, 3, 1}),
			`types.onnx: binding is unusable: bind input "f31": the graph has no such name`,
		},
		{"output as input", "f32_out", floats(t, []int{1, 3, 1}), `bind input "f32_out": the graph has no such name`},
		{
			"type", "f32", ints(t, []int{1, 3, 1}),
			`bind input "f32": the graph has f32[B,3,-1], but the tensor is i64[1 3 1]`,
		},
		{"rank", "f32", floats(t, []int{1, 3}), "the tensor is f32[1 3]"},
		{"dimension", "f32", floats(t, []int{3, 1, 1}), "the tensor is f32[3 1 1]"},
		{"nil", "f32", nil, "no tensor"},
		{"closed", "f32", closed, "already closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, y := floats(t, []int{2, 3, 1}), floats(t, []int{2, 3, 1})
			b := ready(t, s, map[string]*ort.Tensor{"f32": x}, map[string]*ort.Tensor{"f32_out": y})
			first := b.BindInput(tt.input, tt.x)
			if !errors.Is(first, ort.ErrBinding) || !strings.Contains(first.Error(), tt.want) {
				t.Fatalf("error %v, want %s", first, tt.want)
			}
			for name, err := range map[string]error{
				"run": b.Run(nil), "bind input": b.BindInput("f32", x), "bind output": b.BindOutput("f32_out", y),
				"run again": b.Run(nil),
			} {
				if err != first {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestMissingInput(t *testing.T) {
	b := ready(t, graph(t, "add_one"), nil, map[string]*ort.Tensor{"y": floats(t, []int{1})})
	if err := b.Run(nil); err == nil || !strings.HasPrefix(err.Error(), "add_one.onnx: run: ") {
		t.Errorf("run without an input: %v", err)
	}
}

func TestBindingClose(t *testing.T) {
	s := graph(t, "add_one")
	b := binding(t, s)
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := b.Run(nil); !errors.Is(err, ort.ErrClosed) {
		t.Error(err)
	}
	if err := addOne(s); err != nil {
		t.Errorf("the session after a binding's Close: %v", err)
	}
}

func TestTerminate(t *testing.T) {
	x := floats(t, []int{1})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	o := runOptions(t)
	if err := errors.Join(b.Run(o), o.Terminate()); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(o); !errors.Is(err, ort.ErrTerminated) {
		t.Errorf("run after Terminate: %v", err)
	}
	if err := b.Run(nil); err != nil {
		t.Errorf("run without these options: %v", err)
	}
	if err := errors.Join(o.ClearTerminate(), b.Run(o)); err != nil {
		t.Errorf("run after ClearTerminate: %v", err)
	}
	if got := ort.View[float32](x.Bytes())[0]; got != 3 {
		t.Errorf("three runs counted to %v", got)
	}
}

func TestTerminateRunInFlight(t *testing.T) {
	const rounds = 1 << 40 // days
	b := ready(t, graph(t, "loop"),
		map[string]*ort.Tensor{"count": ints(t, nil, rounds), "x": floats(t, []int{1}, 1)},
		map[string]*ort.Tensor{"y": floats(t, []int{1})})
	o := runOptions(t)
	done := make(chan error)
	go func() { done <- b.Run(o) }()
	select {
	case err := <-done:
		t.Fatalf("the run ended by itself: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := o.Terminate(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ort.ErrTerminated) {
		t.Error(err)
	}
}

func TestRunConfig(t *testing.T) {
	x := floats(t, []int{1})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	o := runOptions(t)
	if err := errors.Join(o.AddConfig("no.such.key", "1"), b.Run(o)); err != nil {
		t.Errorf("an unknown key: %v", err)
	}
	// A key that the library reads, with a value that it refuses, shows that entries arrive.
	if err := o.AddConfig("memory.enable_memory_arena_shrinkage", "nonsense"); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(o); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a wrong value: %v", err)
	}
}

func TestRunOptionsClose(t *testing.T) {
	o := runOptions(t)
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	x := floats(t, []int{1})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	for name, err := range map[string]error{
		"run": b.Run(o), "terminate": o.Terminate(), "clear": o.ClearTerminate(), "config": o.AddConfig("a", "b"),
	} {
		if !errors.Is(err, ort.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error has the library's own message, and the session remains usable.
func TestOutOfMemory(t *testing.T) {
	shape, sum := ints(t, []int{1}, 1<<46), floats(t, nil)
	b := ready(t, graph(t, "fill"), map[string]*ort.Tensor{"shape": shape}, map[string]*ort.Tensor{"sum": sum})
	if err := b.Run(nil); !errors.Is(err, ort.ErrOutOfMemory) {
		t.Errorf("256 TiB: %v", err)
	}
	ort.View[int64](shape.Bytes())[0] = 4
	if err := b.Run(nil); err != nil {
		t.Error(err)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	x := floats(t, []int{4})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	o := runOptions(t)
	if n := testing.AllocsPerRun(100, func() {
		if err := b.Run(o); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
