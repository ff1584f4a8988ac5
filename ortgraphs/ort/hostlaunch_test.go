package ort_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// TestHostLaunches: a Go function is called in its place among the launches, once per run, and its error is that of the
// run.
func TestHostLaunches(t *testing.T) {
	var calls []string
	var failure error
	host := func(name string) ort.KernelCall {
		return ort.KernelCall{Inputs: 2, Outputs: f32x4, Launches: []ort.KernelLaunch{{Host: func() error {
			calls = append(calls, name)
			return failure
		}}}}
	}
	first, second := host("first"), host("second")
	outputs := map[string]onnxpb.TensorProto_DataType{}
	for _, name := range []string{"2x", "4x", "first", "second"} {
		outputs[name] = onnxpb.TensorProto_FLOAT
	}
	s := open(t, ort.SessionConfig{Threads: 1,
		Kernels: &ort.Kernels{Launch: orttest.Launch, Calls: []ort.KernelCall{double, first, second}},
		// ONNX Runtime begins with the last leaf.
		Model: kernelModel(t, outputs,
			callNode(double, 0, []string{"x"}, []string{"2x"}), callNode(double, 0, []string{"2x"}, []string{"4x"}),
			callNode(second, 2, []string{"4x", "2x"}, []string{"second"}),
			callNode(first, 1, []string{"2x", "x"}, []string{"first"}))})
	bound := map[string]*ort.Tensor{}
	for name := range outputs {
		bound[name] = floats(t, []int{4})
	}
	x := floats(t, []int{4})
	b := ready(t, s, map[string]*ort.Tensor{"x": x}, bound)
	copy(ort.View[float32](x.Bytes()), []float32{1, 2, 3, 4})
	for range 2 {
		calls = nil
		if err := b.Run(nil); err != nil || !slices.Equal(calls, []string{"first", "second"}) {
			t.Errorf("called %q, %v", calls, err)
		}
	}
	if got := ort.View[float32](bound["4x"].Bytes()); !slices.Equal(got, []float32{4, 8, 12, 16}) {
		t.Errorf("4x = %v: an output that such a call reads is another", got)
	}
	failure, calls = errors.New("a rank is gone"), nil
	if err := b.Run(nil); err == nil || !strings.Contains(err.Error(), "a rank is gone") || len(calls) != 1 {
		t.Errorf("called %q, %v", calls, err)
	}
}
