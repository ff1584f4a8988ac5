// Package bundletest makes variants of bundles for tests.
package bundletest

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

// Rewrite copies a bundle, changed. Of the files that change lists or alters it computes the hashes.
func Rewrite(t testing.TB, dir string, change func(dir string, m *manifest.Bundle)) *ortgraphs.Bundle {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(to, ortgraphs.ManifestFile)
	var m manifest.Bundle
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	change(to, &m)
	for name := range m.Files {
		data, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		m.Files[name] = hex.EncodeToString(sum[:])
	}
	if data, err = json.Marshal(m); err == nil {
		err = os.WriteFile(file, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := ortgraphs.Load(to)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// WithoutEval copies a bundle without its eval graph.
func WithoutEval(t testing.TB, dir string) *ortgraphs.Bundle {
	return Rewrite(t, dir, func(dir string, m *manifest.Bundle) {
		m.Graphs = slices.DeleteFunc(m.Graphs, func(g manifest.Graph) bool {
			if g.Kind != "eval" {
				return false
			}
			delete(m.Files, g.File)
			if err := os.Remove(filepath.Join(dir, g.File)); err != nil {
				t.Fatal(err)
			}
			return true
		})
	})
}

// Mixed copies a bundle with a bf16 graph that the CPU can run: it takes matrices and gives their gradients in bf16,
// and computes in f32. wide names the matrices whose gradients stay f32.
func Mixed(t testing.TB, dir string, wide ...string) *ortgraphs.Bundle {
	t.Helper()
	const file = "training_model.bf16.onnx"
	return Rewrite(t, dir, func(dir string, m *manifest.Bundle) {
		model, err := ortgraphs.ReadModel(filepath.Join(dir, "training_model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range m.Parameters {
			if len(p.Shape) < 2 {
				continue
			}
			m.Parameters[i].Compute = manifest.BF16
			takeBF16(model.Graph, p.Name)
			if !p.Frozen && !slices.Contains(wide, p.Name) {
				giveBF16(model.Graph, "grad."+p.Name)
			}
		}
		data, err := proto.Marshal(model)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Graphs, m.Files[file] = append(m.Graphs, manifest.Graph{File: file, Kind: "train", Precision: "bf16"}), ""
	})
}

// The players of WithPlayers.
const (
	First  = "first"
	Second = "second"
)

// WithPlayers copies a bundle with two players, which share its loss. first accepts the parameters and the metrics of the
// first one. change, which may be nil, changes the graph of the first one.
func WithPlayers(t testing.TB, dir string, first func(name string) bool, change func(*onnxpb.GraphProto)) *ortgraphs.Bundle {
	t.Helper()
	owner := func(name string) string {
		if first(name) {
			return First
		}
		return Second
	}
	return Rewrite(t, dir, func(dir string, m *manifest.Bundle) {
		m.Players = []manifest.Player{{Name: First, Optimizer: m.Optimizer}, {Name: Second, Optimizer: m.Optimizer}}
		m.Optimizer = manifest.Optimizer{}
		for i, p := range m.Parameters {
			m.Parameters[i].Player = owner(p.Name)
		}
		for i, s := range m.State {
			m.State[i].Player = owner(s.Name)
		}
		for i, out := range m.Outputs {
			if out.IsMetric() {
				m.Outputs[i].Player = owner(out.Name)
			}
		}
		i := slices.IndexFunc(m.Graphs, func(g manifest.Graph) bool { return g.Kind == "train" })
		whole := m.Graphs[i].File
		m.Graphs = slices.Delete(m.Graphs, i, i+1)
		for _, p := range m.Players {
			model, err := ortgraphs.ReadModel(filepath.Join(dir, whole))
			if err != nil {
				t.Fatal(err)
			}
			model.Graph.Output = slices.DeleteFunc(model.Graph.Output, func(v *onnxpb.ValueInfoProto) bool {
				kind, name, _ := strings.Cut(v.GetName(), ".")
				if kind == "metric" {
					name = v.GetName()
				}
				return name != "" && owner(name) != p.Name
			})
			if p.Name == First && change != nil {
				change(model.Graph)
			}
			file := "training_model." + p.Name + ".onnx"
			data, err := proto.Marshal(model)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			m.Graphs, m.Files[file] = append(m.Graphs, manifest.Graph{File: file, Kind: "train", Precision: "f32", Player: p.Name}), ""
		}
		delete(m.Files, whole)
		if err := os.Remove(filepath.Join(dir, whole)); err != nil {
			t.Fatal(err)
		}
	})
}

func cast(from, to string, t onnxpb.TensorProto_DataType) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to},
		Attribute: []*onnxpb.AttributeProto{{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(t))}}}
}

func takeBF16(g *onnxpb.GraphProto, name string) {
	for _, n := range g.Node {
		for i := range n.Input {
			if n.Input[i] == name {
				n.Input[i] = name + ".f32"
			}
		}
	}
	g.Node = slices.Insert(g.Node, 0, cast(name, name+".f32", onnxpb.TensorProto_FLOAT))
	declare(g.Input, name)
}

func giveBF16(g *onnxpb.GraphProto, name string) {
	for _, n := range g.Node {
		for _, names := range [][]string{n.Input, n.Output} {
			for i := range names {
				if names[i] == name {
					names[i] = name + ".f32"
				}
			}
		}
	}
	g.Node = append(g.Node, cast(name+".f32", name, onnxpb.TensorProto_BFLOAT16))
	declare(g.Output, name)
}

func declare(list []*onnxpb.ValueInfoProto, name string) {
	i := slices.IndexFunc(list, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == name })
	list[i].Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_BFLOAT16))
}
