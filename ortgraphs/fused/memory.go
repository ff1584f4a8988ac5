package fused

import (
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Lifetimes says when the tensors between the nodes of the written graph are in memory, if all programs can be loaded.
// Call it before Load.
func (p *Plan) Lifetimes() (*lifetime.Plan, error) {
	model, err := p.Draft()
	if err != nil {
		return nil, err
	}
	r, err := shapes.Infer(model, nil)
	if err != nil {
		return nil, err
	}
	return lifetime.Of(r), nil
}
