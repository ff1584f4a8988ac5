package fused

import (
	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
)

// Predict returns what a step is expected to take. faults says why kernels are not used, by region.
func (p *Plan) Predict(s cost.Settings, faults map[int]error) *cost.Prediction {
	plain := map[int]string{}
	for i, why := range p.reasons {
		plain[i] = why
	}
	for i, fault := range faults {
		plain[i] = cost.Faulty + fault.Error()
	}
	s.BF16Attention = p.narrowable
	return cost.Of(p.graph, p.regions, p.kernels, plain, s)
}

// narrowable reports whether attention of the graph can be rounded to bf16.
func (p *Plan) narrowable() bool {
	g, err := p.lower()
	return err == nil && fuse.NarrowAttention(g) > 0
}
