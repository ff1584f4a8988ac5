package fuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

func load(t testing.TB, path string) *onnxpb.ModelProto {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// partition lowers and partitions a model.
func partition(t testing.TB, m *onnxpb.ModelProto, sizes shapes.Sizes) (*shapes.Result, *fuse.Graph, []*fuse.Region) {
	t.Helper()
	r, g := lowered(t, m, sizes)
	regions, err := fuse.VerifiedPartition(g)
	if err != nil {
		t.Fatal(err)
	}
	return r, g, regions
}

// lowered is a graph before its passes.
func lowered(t testing.TB, m *onnxpb.ModelProto, sizes shapes.Sizes) (*shapes.Result, *fuse.Graph) {
	t.Helper()
	r, err := shapes.Infer(m, sizes)
	if err != nil {
		t.Fatal(err)
	}
	g, err := fuse.Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, g
}

// attentionOf and productsOf return the work of a region if it is that, or nil.
func attentionOf(r *fuse.Region) *fuse.Attention {
	a, _ := r.Work.(*fuse.Attention)
	return a
}

func productsOf(r *fuse.Region) *fuse.Products {
	p, _ := r.Work.(*fuse.Products)
	return p
}

// TestTrainingGraphs: the regions of training graphs compute what ONNX Runtime computes, loss and gradients.
func TestTrainingGraphs(t *testing.T) {
	for name, sizes := range map[string]shapes.Sizes{
		"../testdata/pico":               {"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3},
		"../builtin/myxtts-multispeaker": {"B": 3, "T_text": 3, "T_mel": 6},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			model := load(t, name+"/training_model.onnx")
			r, g, regions := partition(t, model, sizes)
			compare(t, model, r, g, regions, batch(r, sizes), 3e-5, 0)
		})
	}
}

// batch makes up the inputs of a training graph: the second row is short, the last one is empty.
func batch(r *shapes.Result, sizes shapes.Sizes) map[string][]float64 {
	random := rand.New(rand.NewPCG(1, 2))
	inputs := map[string][]float64{}
	for _, v := range r.Inputs {
		x := make([]float64, v.Elements())
		for i := range x {
			switch {
			case strings.HasSuffix(v.Name, "_lengths"):
				longest := sizes[map[string]string{
					"text_lengths": "T_text", "reference_mel_lengths": "T_ref_mel",
				}[v.Name]]
				if longest == 0 {
					longest = sizes["T_mel"]
				}
				x[i] = float64([]int{longest, longest - 2, 0}[min(i, 2)])
			case v.Name == "seed":
				x[i] = 12345
			case v.Type == onnxpb.TensorProto_FLOAT:
				x[i] = float64(float32(random.NormFloat64() * 0.3))
			default:
				x[i] = float64(random.IntN(4))
			}
		}
		inputs[v.Name] = x
	}
	return inputs
}

// compare runs the model in ONNX Runtime, its regions in the interpreter, and the model that the graph is written as in
// ONNX Runtime. Each output may differ by within times its norm, plus least.
func compare(
	t *testing.T, model *onnxpb.ModelProto, r *shapes.Result, g *fuse.Graph, regions []*fuse.Region,
	inputs map[string][]float64, within, least float64,
) {
	t.Helper()
	for _, r := range regions {
		if err := fuse.CheckPlaces(r); err != nil {
			t.Error(err)
		}
	}
	m, want := results(t, model, r, g, regions, inputs)
	emitted := runModel(t, emit(t, g, regions), r, nil, inputs)
	for _, o := range g.Outputs {
		x := m[o.Tensor]
		if o.Tensor.Data != nil {
			x = encode(o.Tensor.Data, o.Tensor.Type)
		}
		got := make([]float64, len(x))
		for i := range got {
			got[i] = x[i].f + float64(x[i].i)
		}
		near(t, o.Name+" of the regions", got, want[o.Name], within, least)
		near(t, o.Name+" of the written model", emitted[o.Name], want[o.Name], within, least)
	}
}

// results returns all tensors of a graph, from the interpreter, to which ONNX Runtime gives the results of opaque
// nodes, and what ONNX Runtime returns.
func results(
	t *testing.T, model *onnxpb.ModelProto, r *shapes.Result, g *fuse.Graph, regions []*fuse.Region,
	inputs map[string][]float64,
) (memory, map[string][]float64) {
	t.Helper()
	var opaque []*fuse.Tensor
	for _, n := range g.Nodes {
		if n.Kind == fuse.Opaque {
			opaque = append(opaque, n.Out...)
		}
	}
	want := runModel(t, model, r, opaque, inputs)
	given := memory{}
	for _, in := range g.Inputs {
		given[in] = encode(inputs[in.Name], in.Type)
	}
	for _, x := range opaque {
		given[x] = encode(want[x.Name], x.Type)
	}
	m, err := interpret(g, regions, given)
	if err != nil {
		t.Fatal(err)
	}
	return m, want
}

// near compares a tensor with ONNX Runtime's.
func near(t *testing.T, name string, got, want []float64, within, least float64) {
	t.Helper()
	difference, norm := distance(got, want)
	if !(difference <= within*norm+least) {
		t.Errorf("%s: %g of its norm %g away from ONNX Runtime's", name, difference/norm, norm)
	}
}

// distance returns the norm of the difference of two tensors, and that of the second.
func distance(got, want []float64) (difference, norm float64) {
	for i := range want {
		if got[i] != want[i] { // infinite ones are equal
			difference = math.Hypot(difference, got[i]-want[i])
		}
		norm = math.Hypot(norm, want[i])
	}
	return difference, norm
}

// runModel runs the model in ONNX Runtime and returns its outputs and the other tensors.
func runModel(
	t *testing.T, model *onnxpb.ModelProto, r *shapes.Result, others []*fuse.Tensor, inputs map[string][]float64,
) map[string][]float64 {
	t.Helper()
	model = proto.Clone(model).(*onnxpb.ModelProto)
	type output struct {
		name  string
		kind  shapes.Type
		shape []int
	}
	var outputs []output
	for i, v := range r.Outputs {
		shape := make([]int, len(v.Shape))
		for i, d := range v.Shape {
			shape[i] = int(d)
		}
		outputs = append(outputs, output{model.Graph.Output[i].GetName(), v.Type, shape})
	}
	for _, x := range others {
		model.Graph.Output = append(model.Graph.Output,
			&onnxpb.ValueInfoProto{Name: proto.String(x.Name), Type: &onnxpb.TypeProto{
				Value: &onnxpb.TypeProto_TensorType{
					TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(x.Type))},
				}}})
		outputs = append(outputs, output{x.Name, x.Type, x.Shape})
	}
	data, err := proto.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ort.NewSession(ort.SessionConfig{Model: data, Name: "test", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Inputs {
		shape := make([]int, len(v.Shape))
		for i, d := range v.Shape {
			shape[i] = int(d)
		}
		x := newTensor(t, v.Type, shape)
		write(x, inputs[v.Name])
		if err := b.BindInput(v.Name, x); err != nil {
			t.Fatal(err)
		}
	}
	bound := map[string]*ort.Tensor{}
	for _, o := range outputs {
		bound[o.name] = newTensor(t, o.kind, o.shape)
		if err := b.BindOutput(o.name, bound[o.name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	results := map[string][]float64{}
	for name, x := range bound {
		results[name] = contents(x)
	}
	return results
}

func newTensor(t *testing.T, kind shapes.Type, shape []int) *ort.Tensor {
	t.Helper()
	dtype := map[shapes.Type]manifest.DType{
		onnxpb.TensorProto_FLOAT: manifest.F32, onnxpb.TensorProto_INT32: manifest.I32,
		onnxpb.TensorProto_INT64: manifest.I64, onnxpb.TensorProto_BOOL: manifest.Bool,
	}[kind]
	b, err := ort.NewBuffer(max(dtype.Size()*elements(shape), 1))
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", kind, err))
	}
	t.Cleanup(func() { b.Close() })
	x, err := ort.NewTensor(b.Bytes(), dtype, shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func write(t *ort.Tensor, x []float64) {
	for i, v := range x {
		switch t.DType() {
		case manifest.F32:
			ort.View[float32](t.Bytes())[i] = float32(v)
		case manifest.I32:
			ort.View[int32](t.Bytes())[i] = int32(v)
		case manifest.I64:
			ort.View[int64](t.Bytes())[i] = int64(v)
		default:
			t.Bytes()[i] = byte(v)
		}
	}
}

func contents(t *ort.Tensor) []float64 {
	x := make([]float64, elements(t.Shape()))
	for i := range x {
		switch t.DType() {
		case manifest.F32:
			x[i] = float64(ort.View[float32](t.Bytes())[i])
		case manifest.I32:
			x[i] = float64(ort.View[int32](t.Bytes())[i])
		case manifest.I64:
			x[i] = float64(ort.View[int64](t.Bytes())[i])
		default:
			x[i] = float64(t.Bytes()[i])
		}
	}
	return x
}
