package plan

import (
	"github.com/xtts-host/xtts-host/host/freeze"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// layOutParameters decides which parameters are trained, and their layout in memory.
func (d *Draft) layOutParameters() error {
	parameters := d.Bundle.Manifest.Parameters
	frozen, err := freeze.Resolve(parameters, freeze.Patterns{Freeze: d.Config.Freeze, TrainOnly: d.Config.TrainOnly})
	if err != nil {
		return err
	}
	d.Frozen = freeze.Identity(frozen, len(parameters))
	policy := d.Bundle.Policy(d.Precision.Graph)
	policy.Frozen = frozen
	d.Arena = ortgraphs.NewArena(parameters, policy)
	return nil
}

// Accumulates reports whether gradients are summed up before an update: over micro-batches or over ranks.
func (p *Plan) Accumulates() bool { return p.Config.Accumulate > 1 || !p.World.Alone() }

// Memory returns the memory of weights, gradients and optimizer.
func (p *Plan) Memory() ortgraphs.Memory {
	return p.Arena.Memory(p.Bundle.Manifest.Optimizer, p.Accumulates(), p.Config.EMA > 0)
}

// trained describes the trained parameters for the report.
func (p *Plan) trained() report.Parameters {
	m := p.Memory()
	out := report.Parameters{
		WeightsBytes: m.Weights, CopiesBytes: m.Copies, GradientsBytes: m.Gradients, MomentsBytes: m.Moments, AccumulatorBytes: m.Accumulator, AverageBytes: m.Average,
	}
	for i, q := range p.Bundle.Manifest.Parameters {
		count := &out.Frozen
		if p.Arena.Role(i).Trained {
			count = &out.Trained
		}
		count.Tensors++
		count.Values += q.Elements()
	}
	return out
}
