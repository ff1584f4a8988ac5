package plan

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/freeze"
	"github.com/xtts-host/xtts-host/host/groups"
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
	c := d.Config
	d.Optimizer = d.Bundle.Manifest.Optimizer
	d.Optimizer.LR, d.Optimizer.WeightDecay, d.Optimizer.GradClip = c.LR, c.WeightDecay, c.GradClip
	d.Optimizer.Groups, err = groups.Resolve(parameters, groups.Settings{
		Bundle: d.Bundle.Manifest.Optimizer.Groups, LRFactor: c.LRFactor, WeightDecay: c.WeightDecayOf,
	})
	if err != nil {
		return err
	}
	policy := d.Bundle.Policy(d.Precision.Graph)
	policy.Frozen, policy.Groups = frozen, groups.Of(d.Optimizer.Groups)
	d.Arena = ortgraphs.NewArena(parameters, policy)
	return nil
}

// Accumulates reports whether gradients are summed up before an update: over micro-batches or over ranks.
func (p *Plan) Accumulates() bool { return p.Config.Accumulate > 1 || !p.World.Alone() }

// Memory returns the memory of weights, gradients and optimizer.
func (p *Plan) Memory() ortgraphs.Memory {
	m := p.Arena.Memory(p.Bundle.Manifest.Optimizer, p.Accumulates(), p.Config.EMA > 0)
	m.State = ortgraphs.StateBytes(p.Bundle.Manifest.State)
	return m
}

// trained describes the trained parameters for the report.
func (p *Plan) trained() report.Parameters {
	m := p.Memory()
	out := report.Parameters{
		WeightsBytes: m.Weights, CopiesBytes: m.Copies, GradientsBytes: m.Gradients, MomentsBytes: m.Moments, AccumulatorBytes: m.Accumulator, AverageBytes: m.Average,
		StateBytes: m.State,
	}
	for _, g := range p.Optimizer.Groups {
		out.Groups = append(out.Groups, report.ParameterGroup{LRFactor: g.LRFactor, WeightDecay: g.WeightDecay})
	}
	for i, q := range p.Bundle.Manifest.Parameters {
		count := &out.Frozen
		if p.Arena.Role(i).Trained {
			count = &out.Trained
		}
		count.Tensors++
		count.Values += q.Elements()
		if group := p.Arena.Role(i).Group; group > 0 {
			out.Groups[group-1].Tensors.Tensors++
			out.Groups[group-1].Values += q.Elements()
		}
	}
	out.Groups = slices.DeleteFunc(out.Groups, func(g report.ParameterGroup) bool { return g.Tensors.Tensors == 0 }) // frozen
	return out
}
