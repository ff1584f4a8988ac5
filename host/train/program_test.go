package train

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// everything runs the bundle's training graph unpruned, next to a model, and returns all of its outputs.
func everything(t *testing.T, m *Model, b *ortgraphs.Bundle, seed int64) map[string][]byte {
	t.Helper()
	g, _ := b.Manifest.TrainingGraph("", manifest.F32)
	whole, err := ort.NewSession(ort.SessionConfig{Path: b.Path(g.File), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	binding, err := whole.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	bind := func(to func(string, *ort.Tensor) error, name string, dtype manifest.DType, shape []int, data []byte) {
		tensor, err := ort.NewTensor(data, dtype, shape)
		if err == nil {
			t.Cleanup(func() { tensor.Close() })
			err = to(name, tensor)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := map[string][]byte{}
	result := func(name string, shape ...int) {
		buffer, err := ort.NewBuffer(4 * manifest.Parameter{Shape: shape}.Elements())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { buffer.Close() })
		out[name] = buffer.Bytes()
		bind(binding.BindOutput, name, manifest.F32, shape, out[name])
	}
	for _, tensor := range m.layouts[0].Tensors {
		bind(binding.BindInput, tensor.Name, tensor.DType, tensor.Shape, m.slots[0].host[tensor.Offset:])
	}
	for i, w := range m.Weights() {
		bind(binding.BindInput, w.Name, manifest.F32, w.Shape, w.Data)
		if p := m.players[0].params[i]; !p.Frozen {
			result("grad."+p.Name, p.Shape...)
		}
	}
	*m.seeds[0].value = seed
	bind(binding.BindInput, seedInput, manifest.I64, nil, m.in.host[m.seeds[0].at:])
	for _, o := range b.Manifest.Outputs {
		result(o.Name)
	}
	if err := binding.Run(nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPrunedGraphsGiveTheSameBits compares them with the whole training graph.
func TestPrunedGraphsGiveTheSameBits(t *testing.T) {
	if d := device(t); d.onGPU() {
		t.Skip("the whole graph runs on the CPU")
	}
	for name, dir := range bundles {
		g, b := readGolden(t, name+".json"), bundletest.WithoutEval(t, dir)
		layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
		m := newModel(t, b, layouts, 1)
		g.fill(t, g.Steps[0], &layouts[0], input(t, m))
		scalars := func(r Result) []float32 {
			s := []float32{float32(r.Loss), float32(r.Weight)}
			for _, v := range r.Metrics {
				s = append(s, float32(v))
			}
			return s
		}
		same := func(what string, r Result, whole map[string][]byte) {
			t.Helper()
			names := []string{"loss", "loss_weight"}
			for _, metric := range b.Manifest.Metrics() {
				names = append(names, "metric."+metric)
			}
			for i, v := range scalars(r) {
				if want := floats(whole[names[i]])[0]; v != want {
					t.Errorf("%s: %s: %s is %v, of the whole graph %v", name, what, names[i], v, want)
				}
			}
		}
		r, _ := outputs(t, m, 7)
		whole := everything(t, m, b, 7)
		same("training", r, whole)
		for _, grad := range gradients(t, m) {
			if !bytes.Equal(grad.Data, whole["grad."+grad.Name]) {
				t.Errorf("%s: the gradient of %s has other bits", name, grad.Name)
			}
		}
		load(t, m, 0)
		evaluated, err := m.Evaluate(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		same("evaluation", evaluated, everything(t, m, b, -1))
	}
}

// TestEvaluationHasNoBackwardPass: a bundle without an eval graph is evaluated by the training graph without what only
// gradients need, and ONNX Runtime brings none of it back.
func TestEvaluationHasNoBackwardPass(t *testing.T) {
	b := bundletest.WithoutEval(t, nano)
	g := readGolden(t, "nano.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	training, evaluation := newModel(t, b, layouts, 1).Programs()
	graph, _ := b.Manifest.TrainingGraph("", manifest.F32)
	forward, err := b.Program(graph, func(output string) bool { return !strings.HasPrefix(output, "grad.") })
	if err != nil {
		t.Fatal(err)
	}
	if evaluation.Nodes != forward.Nodes || evaluation.SHA256 != forward.Hash() || evaluation.File != training[0].File {
		t.Errorf("evaluation by %+v, want %d nodes of %s", evaluation, forward.Nodes, graph.File)
	}
	if 2*evaluation.Nodes > training[0].Nodes {
		t.Errorf("evaluation has %d of %d nodes", evaluation.Nodes, training[0].Nodes)
	}
	optimized := func(model []byte) int {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from.onnx"), filepath.Join(dir, "to.onnx")
		if err := os.WriteFile(from, model, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := ort.Optimize(from, to); err != nil {
			t.Fatal(err)
		}
		m, err := ortgraphs.ReadModel(to)
		if err != nil {
			t.Fatal(err)
		}
		return len(m.Graph.Node)
	}
	whole, err := b.Program(graph, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	all, pruned := optimized(whole.Model), optimized(forward.Model)
	t.Logf("%d nodes in training, %d in evaluation; ONNX Runtime runs %d and %d", training[0].Nodes, evaluation.Nodes,
		all, pruned)
	if 2*pruned > all {
		t.Errorf("of %d nodes ONNX Runtime runs %d in evaluation", all, pruned)
	}
}

// TestConstantsInDataFiles: a pruned graph finds those in the folder of the bundle's file.
func TestConstantsInDataFiles(t *testing.T) {
	moved := 0
	b := bundletest.Rewrite(t, pico, func(dir string, m *manifest.Bundle) {
		const data = "constants.bin"
		file := filepath.Join(dir, "training_model.onnx")
		model, err := ortgraphs.ReadModel(file)
		if err != nil {
			t.Fatal(err)
		}
		var values []byte
		for _, c := range model.Graph.Initializer {
			// shapes must lie in the graph
			if c.GetDataType() != int32(onnxpb.TensorProto_FLOAT) || len(c.RawData) == 0 {
				continue
			}
			entry := func(key, value string) *onnxpb.StringStringEntryProto {
				return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
			}
			at, _ := json.Marshal(len(values))
			size, _ := json.Marshal(len(c.RawData))
			values = append(values, c.RawData...)
			c.RawData, c.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
			c.ExternalData = []*onnxpb.StringStringEntryProto{
				entry("location", data), entry("offset", string(at)), entry("length", string(size)),
			}
			moved++
		}
		out, err := proto.Marshal(model)
		if err == nil {
			err = os.WriteFile(file, out, 0o666)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, data), values, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Files[data] = ""
	})
	if moved == 0 {
		t.Fatal("the graph has no constant to move")
	}
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	var losses []float64
	for _, bundle := range []*ortgraphs.Bundle{open(t, pico), b} {
		m := newModel(t, bundle, layouts, 1)
		g.fill(t, g.Steps[0], &layouts[0], input(t, m))
		losses = append(losses, trainOn(t, m, 0, 7).Loss)
	}
	if losses[0] != losses[1] {
		t.Errorf("losses %v", losses)
	}
}

// BenchmarkEvaluation is the time of an evaluation by the eval graph and by the training graph, and of forward and
// backward.
func BenchmarkEvaluation(b *testing.B) {
	for _, c := range []struct {
		name   string
		bundle *ortgraphs.Bundle
		run    func(m *Model) (Result, error)
	}{
		{"eval graph", open(b, nano), func(m *Model) (Result, error) { return m.Evaluate(0, 0) }},
		{"training graph", bundletest.WithoutEval(b, nano), func(m *Model) (Result, error) { return m.Evaluate(0, 0) }},
		{"forward and backward", open(b, nano), func(m *Model) (Result, error) { return m.Train(0, 0, 0, -1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := readGolden(b, "nano.json")
			layouts, _ := shaped(b, c.bundle, 8, g.Steps[:1])
			m := newModel(b, c.bundle, layouts, 1)
			g.fill(b, g.Steps[0], &layouts[0], input(b, m))
			load(b, m, 0)
			for b.Loop() {
				if _, err := c.run(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
