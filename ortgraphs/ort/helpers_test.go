package ort_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func open(t testing.TB, config ort.SessionConfig) *ort.Session {
	t.Helper()
	s, err := ort.NewSession(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// graph opens a graph of testdata with one thread.
func graph(t testing.TB, name string) *ort.Session {
	t.Helper()
	return open(t, ort.SessionConfig{Path: "testdata/" + name + ".onnx", Threads: 1})
}

func binding(t testing.TB, s *ort.Session) *ort.Binding {
	t.Helper()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	return b // its session closes it
}

// ready binds the tensors, inputs and outputs by name.
func ready(t testing.TB, s *ort.Session, inputs, outputs map[string]*ort.Tensor) *ort.Binding {
	t.Helper()
	b := binding(t, s)
	for name, x := range inputs {
		if err := b.BindInput(name, x); err != nil {
			t.Fatal(err)
		}
	}
	for name, y := range outputs {
		if err := b.BindOutput(name, y); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func runOptions(t testing.TB) *ort.RunOptions {
	t.Helper()
	o, err := ort.NewRunOptions()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func buffer(t testing.TB, size int) *ort.Buffer {
	t.Helper()
	b, err := ort.NewBuffer(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// floats creates an f32 tensor over a new buffer. Without data it holds zeros.
func floats(t testing.TB, shape []int, data ...float32) *ort.Tensor {
	t.Helper()
	return filled(t, manifest.F32, shape, data)
}

func ints(t testing.TB, shape []int, data ...int64) *ort.Tensor {
	t.Helper()
	return filled(t, manifest.I64, shape, data)
}

func filled[T ort.Element](t testing.TB, dtype manifest.DType, shape []int, data []T) *ort.Tensor {
	t.Helper()
	size := dtype.Size()
	for _, d := range shape {
		size *= d
	}
	x, err := ort.NewTensor(buffer(t, size).Bytes(), dtype, shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	copy(ort.View[T](x.Bytes()), data)
	return x
}
