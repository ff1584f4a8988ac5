package steady_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/ortgraphs/steady"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// types are those of inputs of a graph.
var types = map[shapes.Type]manifest.DType{
	onnxpb.TensorProto_FLOAT: manifest.F32, onnxpb.TensorProto_INT32: manifest.I32,
	onnxpb.TensorProto_INT64: manifest.I64,
}

// content fills an input: small floats, small integers, lengths up to the width of the batch.
func content(name string, d manifest.DType, mem []byte, width int) {
	rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(len(mem))))
	size := d.Size()
	for i := range len(mem) / size {
		at := mem[i*size:]
		n := 1 + rng.IntN(4)
		if strings.HasSuffix(name, "lengths") {
			n = width - rng.IntN(width/3+1)
		}
		switch d {
		case manifest.F32:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(rng.NormFloat64()*0.1)))
		case manifest.I32:
			binary.LittleEndian.PutUint32(at, uint32(n))
		case manifest.I64:
			binary.LittleEndian.PutUint64(at, uint64(n))
		}
	}
}

func tensor(t *testing.T, d manifest.DType, shape []int64) *ort.Tensor {
	t.Helper()
	n, dims := 1, []int{}
	for _, s := range shape {
		n, dims = n*int(s), append(dims, int(s))
	}
	x, err := ort.NewTensor(make([]byte, max(n*d.Size(), 1))[:n*d.Size()], d, dims)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// bits runs a graph with so many threads, and returns the bytes of its outputs by name.
func bits(t *testing.T, model []byte, r *shapes.Result, width, threads int) map[string][]byte {
	t.Helper()
	s, err := ort.NewSession(ort.SessionConfig{Model: model, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, v := range r.Inputs {
		x := tensor(t, types[v.Type], v.Shape)
		content(v.Name, types[v.Type], x.Bytes(), width)
		if err := b.BindInput(v.Name, x); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string][]byte{}
	for _, v := range r.Outputs {
		x := tensor(t, types[v.Type], v.Shape)
		if err := b.BindOutput(v.Name, x); err != nil {
			t.Fatal(err)
		}
		out[v.Name] = x.Bytes()
	}
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBundles compares all outputs of the training and evaluation graphs, gradients included, for batches of many
// sizes.
func TestBundles(t *testing.T) {
	dirs := []string{"../builtin/myxtts-nano", "../builtin/myxtts-multispeaker", "../testdata/pico"}
	rewritten, unsteady := 0, 0
	for _, dir := range dirs {
		for _, file := range []string{"training_model.onnx", "eval_model.onnx"} {
			model, err := os.ReadFile(dir + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range [][2]int{{1, 37}, {2, 90}, {3, 50}, {5, 24}, {16, 30}} {
				changed, wrong := compare(t, model, size[0], size[1])
				rewritten += changed
				if wrong != "" {
					t.Errorf("%s/%s, batch %d of %d frames: %s", dir, file, size[0], size[1], wrong)
				}
				if file == "training_model.onnx" && size[0] < 3 && changed > 0 {
					unsteady++
				}
			}
		}
	}
	if rewritten == 0 || unsteady == 0 {
		t.Error("no graph was rewritten")
	}
}

// compare runs a rewritten graph with several numbers of threads, and says which outputs differ.
func compare(t *testing.T, model []byte, rows, frames int) (changed int, wrong string) {
	t.Helper()
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(model, m); err != nil {
		t.Fatal(err)
	}
	sizes, bucket := shapes.Sizes{}, steady.Bucket{}
	for _, in := range m.Graph.Input {
		var shape []int
		for _, d := range in.GetType().GetTensorType().GetShape().GetDim() {
			n := int(d.GetDimValue())
			switch symbol := d.GetDimParam(); {
			case symbol == "B":
				n = rows
			case symbol != "":
				if n = frames; strings.Contains(symbol, "text") {
					n = max(frames/5, 4)
				}
			}
			if d.GetDimParam() != "" {
				sizes[d.GetDimParam()] = n
			}
			shape = append(shape, n)
		}
		bucket[in.GetName()] = shape
	}
	r, err := shapes.Infer(m, sizes)
	if err != nil {
		t.Fatal(err)
	}
	rewritten, err := steady.Rewrite(model, []steady.Bucket{bucket})
	if err != nil {
		t.Fatal(err)
	}
	if model, changed = rewritten.Model, rewritten.Changed; rewritten.Unproven != "" {
		return changed, "not proven: " + rewritten.Unproven
	}
	width := max(frames/5, 4)
	want := bits(t, model, r, width, 1)
	for _, threads := range []int{2, 3, 7} {
		var names []string
		for name, got := range bits(t, model, r, width, threads) {
			if !bytes.Equal(got, want[name]) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return changed, fmt.Sprintf("%d outputs differ with %d threads: %s", len(names), threads, names[0])
		}
	}
	return changed, ""
}
