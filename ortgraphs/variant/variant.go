// Package variant makes variants of bundles, for tests and for programs that test a run.
package variant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Change changes a copy of a bundle: the files in a folder, and the manifest.
type Change func(dir string, m *manifest.Bundle) error

// Rewrite copies the bundle in the folder from to the folder to, which is made, with changes. Of the files that the
// manifest lists after them it computes the hashes.
func Rewrite(from, to string, changes ...Change) (*ortgraphs.Bundle, error) {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return nil, err
	}
	file := filepath.Join(to, ortgraphs.ManifestFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m manifest.Bundle
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if m.Files == nil {
		m.Files = map[string]string{}
	}
	for _, change := range changes {
		if err := change(to, &m); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", from, err)
		}
	}
	for name := range m.Files {
		data, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		m.Files[name] = hex.EncodeToString(sum[:])
	}
	if data, err = json.Marshal(m); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, data, 0o666); err != nil {
		return nil, err
	}
	return ortgraphs.Load(to)
}

// WithoutEval removes the eval graph.
func WithoutEval(dir string, m *manifest.Bundle) error {
	file, err := takeGraph(m, "eval")
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, file))
}

// takeGraph removes the first graph of a kind from the manifest, and returns its file.
func takeGraph(m *manifest.Bundle, kind string) (file string, err error) {
	i := slices.IndexFunc(m.Graphs, func(g manifest.Graph) bool { return g.Kind == kind })
	if i < 0 {
		return "", fmt.Errorf("it has no graph of kind %q", kind)
	}
	file = m.Graphs[i].File
	delete(m.Files, file)
	m.Graphs = slices.Delete(m.Graphs, i, i+1)
	return file, nil
}

// Mixed adds a bf16 graph that the CPU can run: it takes matrices and gives their gradients in bf16, and computes in
// f32. wide names the matrices whose gradients stay f32.
func Mixed(wide ...string) Change {
	const file = "training_model.bf16.onnx"
	return func(dir string, m *manifest.Bundle) error {
		m.Graphs, m.Files[file] = append(m.Graphs, manifest.Graph{File: file, Kind: "train", Precision: "bf16"}), ""
		return rewriteGraph(filepath.Join(dir, "training_model.onnx"), filepath.Join(dir, file),
			func(g *onnxpb.GraphProto) {
				for i, p := range m.Parameters {
					if len(p.Shape) < 2 {
						continue
					}
					m.Parameters[i].Compute = manifest.BF16
					takeBF16(g, p.Name)
					if !p.Frozen && !slices.Contains(wide, p.Name) {
						giveBF16(g, "grad."+p.Name)
					}
				}
			})
	}
}

// rewriteGraph changes the graph of an ONNX file.
func rewriteGraph(from, to string, change func(*onnxpb.GraphProto)) error {
	model, err := ortgraphs.ReadModel(from)
	if err != nil {
		return err
	}
	change(model.Graph)
	data, err := proto.Marshal(model)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o666)
}
