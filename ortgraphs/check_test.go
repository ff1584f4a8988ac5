package ortgraphs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestLoadRefuses(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			c.change(f)
			dir := f.write(t)
			_, err := Load(dir)
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an *InvalidError", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if n := 1 + strings.Count(c.want, "\n"); len(invalid.Faults) != n {
				t.Errorf("%d faults, want %d: %v", len(invalid.Faults), n, err)
			}
		})
	}
}

// TestGraphOfAnyName: what the manifest calls a graph is checked like one, whatever its file is named.
func TestGraphOfAnyName(t *testing.T) {
	f := newFixture()
	f.models["train.bin"] = f.models["training_model.onnx"]
	delete(f.models, "training_model.onnx")
	f.manifest.Graphs[0].File = "train.bin"
	b, err := Load(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if b.Model("train.bin") == nil {
		t.Error("the graph was not read")
	}
	f.models["train.bin"].IrVersion = proto.Int64(12)
	clear(f.manifest.Files)
	if _, err := Load(f.write(t)); err == nil || !strings.Contains(err.Error(), "train.bin: ir_version") {
		t.Errorf("got %v", err)
	}
}

// Weights that the module computes, such as those of a weight norm, are cast by the graph.
func TestBF16GraphMayCastAllWeights(t *testing.T) {
	cast := node("Cast", "", "out.weight")
	cast.Attribute = []*onnxpb.AttributeProto{{
		Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(),
		I: proto.Int64(int64(onnxpb.TensorProto_BFLOAT16)),
	}}
	scan := node("Scan", "", "out.weight")
	scan.Attribute = []*onnxpb.AttributeProto{{
		Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(),
		G: &onnxpb.GraphProto{Name: proto.String("body"), Node: []*onnxpb.NodeProto{cast}},
	}}
	for _, n := range []*onnxpb.NodeProto{cast, scan} {
		f := newFixture()
		f.manifest.Parameters[0].Compute = ""
		model := newModel(onnxpb.TensorProto_FLOAT, true)
		model.Graph.Node = append(model.Graph.Node, n)
		f.models["training_model.bf16.onnx"] = model
		b, err := Load(f.write(t))
		if err != nil {
			t.Fatalf("%s: %v", n.GetOpType(), err)
		}
		a := NewArena(b.Manifest.Parameters, b.Policy(manifest.BF16))
		if copies, grads := a.Bytes(Copies), a.Bytes(Gradients); copies != 0 || grads == 0 {
			t.Errorf("%s: %d bytes of copies, %d of gradients", n.GetOpType(), copies, grads)
		}
	}
}

func TestLoadListsAllFaults(t *testing.T) {
	f := newFixture()
	f.models["training_model.onnx"].IrVersion = proto.Int64(12)
	f.models["eval_model.onnx"].Graph.Output = nil
	f.weights = f.weights[:2]
	f.manifest.Files["lost.txt"] = strings.Repeat("0", 64)
	dir := f.write(t)
	if err := os.WriteFile(filepath.Join(dir, "extra.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir)
	want := "bundle " + dir + `: 6 faults:
  extra.txt: not listed in files of bundle.json
  eval_model.onnx: output "loss": missing
  eval_model.onnx: output "loss_weight": missing
  lost.txt: missing, but listed in files of bundle.json
  params.safetensors: tensor "table": missing
  training_model.onnx: ir_version: 12, must be 10 or lower`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestInvalidErrorIsBounded(t *testing.T) {
	e := &InvalidError{Dir: "d"}
	for i := range 1000 {
		e.Faults = append(e.Faults, Fault{File: "g.onnx", Place: fmt.Sprint(i), Reason: "bad"})
	}
	if got := e.Error(); strings.Count(got, "\n") != maxShown+1 || !strings.HasSuffix(got, "and 980 more") {
		t.Errorf("%s", got)
	}
}

func TestHintFollowsTheFaults(t *testing.T) {
	files := &InvalidError{Faults: []Fault{{File: "a", Reason: "missing"}}}
	content := &InvalidError{Faults: []Fault{{File: "a", Reason: "missing"}, {File: "b", Place: "p", Reason: "bad"}}}
	if !strings.Contains(files.Hint(), "copy the folder") || !strings.Contains(content.Hint(), "docs/bundle.md") {
		t.Errorf("%q, %q", files.Hint(), content.Hint())
	}
}

// outside returns a constant whose data is in a file, with one more entry.
func outside(location, key, value string) *onnxpb.TensorProto {
	entry := func(k, v string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(k), Value: proto.String(v)}
	}
	return &onnxpb.TensorProto{
		Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{1},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{entry("location", location), entry(key, value)},
	}
}
