package host

import (
	"fmt"

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
	j.arena = ortgraphs.NewArena(parameters, ortgraphs.Policy{Frozen: frozen})
	return nil
}

// memory is what weights, gradients and the optimizer take.
func (j *job) memory() ortgraphs.Memory {
	return j.arena.Memory(j.bundle.Manifest.Optimizer.Name, j.cfg.Accumulate > 1)
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

// trainedText says it for the banner: what is trained, and the memory for it.
func (j *job) trainedText() (counts, memory string) {
	p := j.trained()
	counts = fmt.Sprintf("%s of %s, %s of %s parameters",
		report.Thousands(p.Trained.Tensors), report.Count(p.Trained.Tensors+p.Frozen.Tensors, "tensor"),
		report.Thousands(p.Trained.Values), report.Thousands(p.Trained.Values+p.Frozen.Values))
	memory = fmt.Sprintf("gradients %s MiB, moments %s MiB", mebibytes(float64(p.GradientsBytes)), mebibytes(float64(p.MomentsBytes)))
	if p.AccumulatorBytes > 0 {
		memory += fmt.Sprintf(", accumulator %s MiB", mebibytes(float64(p.AccumulatorBytes)))
	}
	return counts, memory
}
