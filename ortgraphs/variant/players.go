package variant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The players of Players.
const (
	First  = "first"
	Second = "second"
)

// Players makes two players, which share the loss of the bundle. first accepts the parameters, the metrics and the
// state of the first one. change, which may be nil, changes the graph of the first one.
func Players(first func(name string) bool, change func(*onnxpb.GraphProto)) Change {
	owner := func(name string) string {
		if first(name) {
			return First
		}
		return Second
	}
	return func(dir string, m *manifest.Bundle) error {
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
		whole, err := takeGraph(m, "train")
		if err != nil {
			return err
		}
		for _, p := range m.Players {
			file := "training_model." + p.Name + ".onnx"
			m.Graphs, m.Files[file] = append(m.Graphs,
				manifest.Graph{File: file, Kind: "train", Precision: "f32", Player: p.Name}),
				""
			err := rewriteGraph(filepath.Join(dir, whole), filepath.Join(dir, file), func(g *onnxpb.GraphProto) {
				g.Output = slices.DeleteFunc(g.Output, func(v *onnxpb.ValueInfoProto) bool {
					kind, name, _ := strings.Cut(v.GetName(), ".")
					if kind == "metric" {
						name = v.GetName()
					}
					return name != "" && owner(name) != p.Name
				})
				if p.Name == First && change != nil {
					change(g)
				}
			})
			if err != nil {
				return err
			}
		}
		return os.Remove(filepath.Join(dir, whole))
	}
}
