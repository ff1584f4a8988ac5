package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/bench/pytorch"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// clips writes the file from which PyTorch's side trains end to end on the clips of a run, and returns its path. If
// that side cannot compute the run's stages, it returns the reason instead.
func (c *comparer) clips(ctx context.Context, size int) (path, reason string, err error) {
	set := c.settings(size, Variant{c.fromFiles, TripleBuffered})
	p, err := plan.New(ctx, set, inventory.Open, nil)
	if err != nil {
		return "", "", exit.Refused(fmt.Errorf("batch size %d: %w", size, err))
	}
	defer p.Close()
	for _, in := range p.Stages.Resolved.Instances {
		if name := stageName(p, in); !slices.Contains(c.result.PyTorch.Stages, name) {
			return "", "there is no stage " + name + " in PyTorch", nil
		}
	}
	for _, t := range p.Stages.Resolved.Dataset {
		if t.FromList() {
			return "", "the input " + t.Name + " comes from the list, which is not read in PyTorch", nil
		}
	}
	text, err := json.Marshal(clipsOf(p))
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(c.dir, fmt.Sprintf("clips-%d.json", size))
	return path, "", os.WriteFile(path, text, 0o666)
}

// clipsOf describes the clips of a plan with one bucket, and what becomes of them.
func clipsOf(p *plan.Plan) pytorch.Clips {
	c := pytorch.Clips{
		Rows: []pytorch.Clip{}, Tensors: []pytorch.Tensor{}, Dataset: []string{}, Stages: []pytorch.Stage{},
	}
	train := p.Data.Train
	for i := range train.Index.Rows {
		if row := &train.Index.Rows[i]; train.Plan.Bucket(int32(i)) >= 0 {
			c.Rows = append(c.Rows, pytorch.Clip{
				Path: row.Path, Offset: row.Offset, Frames: row.Frames,
				Tokens: append([]int32{}, train.Index.Tokens(row)...), Speaker: row.SpeakerID, Language: row.LanguageID,
			})
		}
	}
	for _, t := range p.Slots.Layouts[len(p.Slots.Layouts)-1].Tensors {
		c.Tensors = append(c.Tensors, pytorch.Tensor{Name: t.Name, Shape: t.Shape, Pad: t.Pad})
	}
	for _, t := range p.Stages.Resolved.Dataset {
		c.Dataset = append(c.Dataset, t.Name)
	}
	for _, in := range p.Stages.Resolved.Instances {
		c.Stages = append(c.Stages, pytorch.Stage{
			Stage: stageName(p, in), Inputs: in.Inputs, Outputs: in.Outputs, Config: in.Stage.Complete(in.Config),
		})
	}
	return c
}

// stageName names the stage of an instance as "plugin/stage".
func stageName(p *plan.Plan, in catalog.Instance) string {
	return p.Stages.Resolved.Plugins[in.Plugin].Manifest.ID + "/" + in.Stage.Name
}

// endToEnd trains from the audio files, with overlap of input and training.
func (b *benchmark) endToEnd(ctx context.Context, size int, placement string) EndToEnd {
	r, err := b.once(ctx, size, Variant{placement, TripleBuffered})
	if err != nil {
		return EndToEnd{EndToEndFailed: err.Error()}
	}
	e := EndToEnd{EndToEndMs: r.StepMs.Distribution, StagesOn: "cpu"}
	if placement == OneGPU {
		e.StagesOn = "gpu"
	}
	return e
}

// endToEndOf returns the figures of PyTorch's side.
func endToEndOf(e pytorch.EndToEnd) EndToEnd {
	return EndToEnd{
		EndToEndMs: report.DistributionOf(e.Ms), StagesOn: e.StagesOn, Workers: e.Workers, EndToEndFailed: e.Failed,
	}
}
