package prepare

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/xtts-host/xtts-host/host/command/engine"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// work is a shard that is prepared.
type work struct {
	*engine.Engine
	Options
	plan  *plan.Plan
	kept  []string     // stages
	split *batch.Split // the list, with a plan of the shard's rows

	cache    *report.FeatureCache // what was found and what was computed
	unusable []dataset.Rejected   // clips whose list did not show it
	done     int                  // clips
}

func newWork(p *plan.Plan, kept []string, o Options) *work {
	ix := p.Data.Train.Index
	part := p.Data.Train.Plan.Part(func(row int32) bool { return ix.Shard(row, o.Shard.Of) == o.Shard.Index })
	p.Data.Train = batch.NewSplit(report.Train, ix, part, p.Config.Seed, p.Decoders())
	return &work{Options: o, plan: p, kept: kept, split: p.Data.Train}
}

// nothing takes the place of a model.
type nothing struct{}

// Load implements batch.Loader.
func (nothing) Load(int, int, []byte) error { return nil }

// run sends the rows of the shard through the stages, each once. progress gets the number of clips that are done.
func (w *work) run(ctx context.Context, progress func(done, of int)) error {
	p := w.plan
	q, err := batch.OpenQuarantine("", p.Data, math.MaxInt, nil, nil) // Run counts them at the end
	if err != nil {
		return err
	}
	defer q.Close()
	path, err := w.path(q)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		path.Pipeline.Run(ctx) // Acquire returns its error
	}()
	of := w.split.Plan.Rows()
	for err == nil {
		var d *pipeline.DeviceSlot
		if d, err = path.Feed.Acquire(ctx); err != nil {
			break
		}
		w.done += d.Batch.Samples() + len(d.Batch.LeftOut)
		path.Feed.Release(d)
		progress(w.done, of)
	}
	stop()
	<-ended
	w.cache, w.unusable = path.FeatureCache(), w.split.Lines(q.Unusable(report.Train))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// path is the path of the batches of a run, of one epoch and with no model at its end.
func (w *work) path(q *batch.Quarantine) (*batch.Path, error) {
	p := w.plan
	source := &batch.Source{Train: w.split.Plan, Accumulate: 1, Epochs: 1, Seed: p.Config.Seed, World: p.World}
	source.Start(pipeline.Position{})
	path, err := batch.New(batch.Config{
		Source: source, Data: p.Data, BatchSize: p.Config.BatchSize,
		Depths: batch.Depths{
			Ring: p.Config.BufferSize, Device: p.Slots.Device, Workers: p.Decoders(), Prefetch: 1,
		},
		Ring: w.Machine.Ring, Layouts: p.Slots.Layouts, Inputs: p.Stages.Resolved.Inputs, Stages: p.Stages.Resolved,
		Pools: w.Machine.Pools, Model: nothing{}, Quarantine: q, Features: w.Machine.Features, Log: w.Log,
		OnRange: p.Config.AfterRange(), Contract: p.Bundle.Manifest.Features,
	})
	if err != nil {
		return nil, err
	}
	for _, s := range w.stages(path.FeatureCache()) {
		if s.TrainingUncached != "" {
			return nil, hint.Errorf("leave it out (docs/feature-cache.md says which are kept)",
				"--stages %s: a run does not keep what it computes, because %s", s.Name, s.TrainingUncached)
		}
	}
	return path, nil
}
