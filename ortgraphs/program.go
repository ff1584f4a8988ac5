package ortgraphs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/leaves"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Program is a graph of a bundle as a run executes it: pruned to the outputs that the run needs, in an order that needs
// little memory.
type Program struct {
	// Model is the ONNX file. Data files that it names are in Dir.
	Model []byte
	Dir   string
	// Nodes counts like GraphSummary.
	Nodes int
}

// Program prunes a graph of the manifest to the outputs that keep accepts.
func (b *Bundle) Program(g manifest.Graph, keep func(output string) bool) (*Program, error) {
	path := b.Path(g.File)
	model, err := prune.Model(b.Model(g.File), keep)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	model.Graph.Node = leaves.Last(model.Graph.Node)
	p := &Program{Dir: b.Dir}
	for _, n := range modelOps(model) {
		p.Nodes += n
	}
	if p.Model, err = (proto.MarshalOptions{Deterministic: true}).Marshal(model); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Hash is the hex SHA-256 of Model.
func (p *Program) Hash() string {
	sum := sha256.Sum256(p.Model)
	return hex.EncodeToString(sum[:])
}
