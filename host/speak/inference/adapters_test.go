package inference

import (
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// tensors are weights in memory.
type tensors map[string]struct {
	shape  []int
	values []float32
}

func (w tensors) Tensor(name string) (safetensors.Info, bool) {
	x, ok := w[name]
	return safetensors.Info{Name: name, DType: safetensors.F32, Shape: x.shape, Bytes: int64(4 * len(x.values))}, ok
}

func (w tensors) Read(name string, dst []byte) error {
	copy(dst, bytesOf(w[name].values))
	return nil
}

func TestGraphsGetWeightsWithTheirAdapters(t *testing.T) {
	plain := tensors{
		"linear": {[]int{2, 3}, []float32{1, 2, 3, 4, 5, 6}}, "linear.a": {[]int{1, 3}, []float32{1, 10, 100}},
		"linear.b": {[]int{2, 1}, []float32{1, -1}}, "words": {[]int{3, 2}, []float32{1, 2, 3, 4, 5, 6}},
		"words.a": {[]int{2, 3}, []float32{1, 2, 3, 10, 20, 30}}, "words.b": {[]int{2, 2}, []float32{1, 0, 1, 1}},
		"filter": {[]int{1, 2, 2}, []float32{0, 0, 0, 1}}, "filter.a": {[]int{2, 4}, []float32{1, 2, 3, 4, 1, 1, 1, 1}},
		"filter.b": {[]int{1, 2}, []float32{1, 0.5}}, "other": {[]int{2}, []float32{7, 8}},
	}
	bundle := &ortgraphs.Bundle{Manifest: &manifest.Bundle{Adapters: []manifest.Adapter{
		{Weight: "linear", A: "linear.a", B: "linear.b", Scale: 2, Layer: "linear"},
		{Weight: "words", A: "words.a", B: "words.b", Scale: 1, Layer: "embedding"},
		{Weight: "filter", A: "filter.a", B: "filter.b", Scale: 2},
	}}}
	weights := withAdapters(plain, bundle)
	for name, want := range map[string][]float32{
		"linear": {3, 22, 203, 2, -15, -194},
		// The product is [[1, 2, 3], [11, 22, 33]].
		"words":  {2, 13, 5, 26, 8, 39},
		"filter": {3, 5, 7, 10},
		"other":  {7, 8},
	} {
		got := make([]float32, len(want))
		if err := weights.Read(name, bytesOf(got)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	delete(plain, "words.b")
	err := weights.Read("words", make([]byte, 24))
	if err == nil || !strings.Contains(err.Error(), `no tensor "words.b"`) {
		t.Error(err)
	}
}
