package host

import (
	"github.com/xtts-host/xtts-host/host/freeze"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// layOutParameters decides what is trained and where it stands in memory.
func (j *job) layOutParameters() error {
	parameters := j.bundle.Manifest.Parameters
	frozen, err := freeze.Resolve(parameters, freeze.Patterns{Freeze: j.cfg.Freeze, TrainOnly: j.cfg.TrainOnly})
	if err != nil {
		return err
	}
	j.frozen = freeze.Identity(frozen, len(parameters))
	policy := j.bundle.Policy(j.precision.Graph)
	policy.Frozen = frozen
	j.arena = ortgraphs.NewArena(parameters, policy)
	return nil
}

// accumulates reports whether gradients are summed up before an update: over micro-batches or over ranks.
func (j *job) accumulates() bool { return j.cfg.Accumulate > 1 || !ranks.Alone() }

// memory is what weights, gradients and the optimizer take.
func (j *job) memory() ortgraphs.Memory {
	return j.arena.Memory(j.bundle.Manifest.Optimizer.Name, j.accumulates())
}

// trained says for the report what the run trains.
func (j *job) trained() report.Parameters {
	m := j.memory()
	p := report.Parameters{
		WeightsBytes: m.Weights, CopiesBytes: m.Copies, GradientsBytes: m.Gradients, MomentsBytes: m.Moments, AccumulatorBytes: m.Accumulator,
	}
	for i, q := range j.bundle.Manifest.Parameters {
		count := &p.Frozen
		if j.arena.Role(i).Trained {
			count = &p.Trained
		}
		count.Tensors++
		count.Values += q.Elements()
	}
	return p
}
