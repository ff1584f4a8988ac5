package ort

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestShrinkArenas: a run releases the memory of its intermediate value. It runs on the CPU, whose arena is of the same
// kind as a GPU's.
func TestShrinkArenas(t *testing.T) {
	const n = 1 << 20
	s, err := NewSession(SessionConfig{Path: "testdata/sgd.onnx", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	binding := func(n int) *Binding {
		b, err := s.NewBinding()
		if err != nil {
			t.Fatal(err)
		}
		w := zeros(t, []int{n})
		b.BindInput("w", w)
		b.BindInput("grad.w", zeros(t, []int{n}))
		b.BindInput("lr", zeros(t, nil))
		b.BindOutput("updated", w)
		return b
	}
	b := binding(n)
	arena := func() int {
		t.Helper()
		info, err := memoryInfo(Host)
		if err != nil {
			t.Fatal(err)
		}
		size, err := stats(s.pointer(), info, "TotalAllocated")
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	options := func(p Place) *RunOptions {
		o, err := NewRunOptions()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		if err := o.ShrinkArenas(p); err != nil {
			t.Fatal(err)
		}
		return o
	}
	run := func(o *RunOptions) {
		t.Helper()
		if err := b.Run(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := binding(10).Run(nil); err != nil { // the CPU's arena keeps the first region that it has allocated
		t.Fatal(err)
	}
	run(nil)
	if size := arena(); size < 4*n {
		t.Errorf("%d bytes, want those of the product at least", size)
	}
	shrinking := options(Host)
	run(shrinking)
	if size := arena(); size >= 4*n {
		t.Errorf("%d bytes after a run that shrinks", size)
	}
	run(nil)
	if size := arena(); size < 4*n {
		t.Errorf("%d bytes after the next run", size)
	}
	if err := b.Run(options(3)); err == nil {
		t.Error("an arena shrinks that is not there")
	}
}

// zeros returns a tensor in memory of its own.
func zeros(t *testing.T, shape []int) *Tensor {
	t.Helper()
	b, err := NewBuffer(4 * slices.Max(append(shape, 1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	x, err := NewTensor(b.Bytes(), manifest.F32, shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}
