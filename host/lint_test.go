package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestLintGraph plants a node into a good bundle that the host must wait for. ONNX Runtime keeps it, so it is found twice.
func TestLintGraph(t *testing.T) {
	dir := changedPico(t, "planted", func(b *manifest.Bundle, model *onnxpb.ModelProto) string {
		model.Graph.Node = append(model.Graph.Node, findNode())
		return "training_model.onnx"
	})
	var out strings.Builder
	err := LintGraph(&out, dir, t.TempDir(), "")
	if err == nil || ExitCode(err) != 2 || !strings.HasSuffix(err.Error(), "planted: 2 findings") || Hint(err) == "" {
		t.Errorf("exit status %d: %v", ExitCode(err), err)
	}
	want := "host-sync           node find (NonZero): the shape of its output depends on the data, so the host must read it\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("it says\n%s\nwant in it\n%s", &out, want)
	}
}

// findNode makes the host wait.
func findNode() *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String("NonZero"), Name: proto.String("find"), Input: []string{"mel_spectrograms"}, Output: []string{"found"}}
}

// TestGraphOfTwoPrecisions adds a bf16 graph to a bundle: graph lint looks into its file, and only there; graph inspect tells what
// it takes.
func TestGraphOfTwoPrecisions(t *testing.T) {
	for _, planted := range []bool{false, true} {
		dir := changedPico(t, "mixed", func(b *manifest.Bundle, model *onnxpb.ModelProto) string {
			lower(b, model.Graph, "mel_head.weight")
			if planted {
				model.Graph.Node = append(model.Graph.Node, findNode())
			}
			return b.Graphs[1].File
		})
		var out strings.Builder
		err := LintGraph(&out, dir, t.TempDir(), "")
		if planted && (err == nil || !strings.HasSuffix(err.Error(), "mixed: 1 finding")) || !planted && err != nil {
			t.Errorf("planted: %v: %v", planted, err)
		}
		for _, want := range []string{
			"\ntraining_model.bf16.onnx: ", "\ntraining_model.bf16.onnx as ONNX Runtime optimises it: not looked at, as its CPU provider",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it says\n%s\nwant in it\n%s", &out, want)
			}
		}
		out.Reset()
		want := "bf16 (training_model.bf16.onnx): 1 parameter of 320 values, with gradients, in bf16, the other 45 in f32\n"
		if err := InspectGraph(&out, dir, t.TempDir(), false); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: it says\n%s\nwant in it\n%s", err, &out, want)
		}
	}
}

// lower makes a graph of precision bf16 of a training graph, with one parameter and its gradient in bf16, and adds it to the manifest.
func lower(b *manifest.Bundle, g *onnxpb.GraphProto, parameter string) {
	bf16 := int32(onnxpb.TensorProto_BFLOAT16)
	cast := func(from, to string, element int32) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to}, Attribute: []*onnxpb.AttributeProto{
			{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(element))},
		}}
	}
	wide, gradient := parameter+".f32", "grad."+parameter
	for _, n := range g.Node {
		for _, names := range [][]string{n.Input, n.Output} {
			for i, name := range names {
				switch name {
				case parameter:
					names[i] = wide
				case gradient:
					names[i] = gradient + ".f32"
				}
			}
		}
	}
	for _, v := range slices.Concat(g.Input, g.Output) {
		if v.GetName() == parameter || v.GetName() == gradient {
			v.GetType().GetTensorType().ElemType = &bf16
		}
	}
	g.Node = slices.Insert(g.Node, 0, cast(parameter, wide, int32(onnxpb.TensorProto_FLOAT)))
	g.Node = append(g.Node, cast(gradient+".f32", gradient, bf16))
	b.Graphs = slices.Insert(b.Graphs, 1, manifest.Graph{File: "training_model.bf16.onnx", Kind: "train", Precision: "bf16"})
	for i := range b.Parameters {
		if b.Parameters[i].Name == parameter {
			b.Parameters[i].Compute = manifest.BF16
		}
	}
}

// changedPico copies the bundle of the tests to a folder of this name. change gets its training graph and says which file of the
// bundle that is now.
func changedPico(t *testing.T, name string, change func(*manifest.Bundle, *onnxpb.ModelProto) string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(pico)); err != nil {
		t.Fatal(err)
	}
	model, err := ortgraphs.ReadModel(filepath.Join(dir, "training_model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bundle.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := manifest.ParseBundle(path, data)
	if err != nil {
		t.Fatal(err)
	}
	file := change(b, model)
	changed, err := proto.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(changed)
	b.Files[file] = hex.EncodeToString(sum[:])
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{filepath.Join(dir, file): changed, path: text} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
