package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// kept is what is kept of the step, to be written.
type kept struct {
	micro     []*micro // one for each micro-batch of a step; nil without such a batch
	gradients []checkpoint.Tensor
	done      *event.Step // nil before the step is over
}

// micro is one of the step's batches.
type micro struct {
	tensors []ring.Tensor // of the slot
	inputs  int           // of them: those of the graph
	slot    []byte
	batch   pipeline.Batch
	seed    int64
	scalars []float32
}

// copied returns what keeps the batches of a step as they leave the ring, on the copier's goroutine. A batch that is
// built again comes again.
func (k *kept) copied(step int64) func(b *pipeline.Batch, layout *ring.Layout, slot []byte) error {
	return func(b *pipeline.Batch, layout *ring.Layout, slot []byte) error {
		if b.Eval || b.Step != step-1 {
			return nil
		}
		m := &micro{tensors: layout.Tensors, slot: slices.Clone(slot[:layout.Size])}
		for m.inputs < len(m.tensors) && m.tensors[m.inputs].Offset < layout.InputBytes {
			m.inputs++
		}
		k.micro[b.Micro] = m // the trainer reads others meanwhile, and this one after the copier has passed it on
		return nil
	}
}

// errDone ends the training.
var errDone = errors.New("the step has been made")

// Batch implements loop.Duties.
func (r *replay) Batch(d *pipeline.DeviceSlot) {
	b := &d.Batch
	if b.Step != r.step-1 {
		return
	}
	m := r.kept.micro[b.Micro]
	m.seed, m.scalars = r.Session.Model.Scalars(d.Index)
	m.batch = pipeline.Batch{
		Epoch: b.Epoch, Index: b.Index, Micro: b.Micro, Bucket: b.Bucket, Rows: slices.Clone(b.Rows),
		LeftOut: slices.Clone(b.LeftOut),
	}
}

// Step implements loop.Duties.
func (r *replay) Step(s *event.Step) error {
	if r.past.differs == nil && !r.past.damaged(s.Step) {
		r.past.verified++
		r.past.differs = r.past.compare(s, r.plan.Bundle.Manifest.Metrics())
	}
	r.waiting.Counted("replayed", "steps", int(s.Step-r.past.step), int(r.step-r.past.step))
	switch s.Step {
	case r.step - 1:
		return r.before()
	case r.step:
		return r.after(s)
	}
	return nil
}

// Evaluated implements loop.Duties. The learning rates show whether an evaluation was another.
func (*replay) Evaluated(*event.Evaluation, *train.Best) error { return nil }

// before writes the weights that the step begins with.
func (r *replay) before() error {
	if err := r.Session.Pull(); err != nil {
		return err
	}
	return r.out.tensors(weightsFile, stored(r.Session.Model.Weights()), nil)
}

// after keeps the result of the step, and writes the weights that it ends with.
func (r *replay) after(s *event.Step) error {
	done := *s
	done.Metrics, done.Rows, done.Players = slices.Clone(s.Metrics), slices.Clone(s.Rows), slices.Clone(s.Players)
	for _, o := range r.Session.Optimizers {
		gradients, err := o.Gradients()
		if err != nil {
			return err
		}
		r.kept.gradients = append(r.kept.gradients, gradients...)
	}
	if err := r.out.tensors(gradientsFile, stored(r.kept.gradients), nil); err != nil {
		return err
	}
	if err := r.Session.Pull(); err != nil {
		return err
	}
	if err := r.out.tensors(afterFile, stored(r.Session.Model.Weights()), nil); err != nil {
		return err
	}
	r.kept.done = &done
	return errDone
}

// rows describes the rows of a batch.
func (r *replay) rows(b *pipeline.Batch) (rows []row) {
	train := r.plan.Data.Train.Index
	for place, at := range b.Rows {
		if at < 0 {
			rows = append(rows, row{Place: place, Empty: true})
			continue
		}
		clip := &train.Rows[at]
		out := row{
			Place: place, ID: clip.ID, Text: clip.Text, Speaker: nameOf(train.Speakers, clip.SpeakerID),
			Language: nameOf(train.Languages, clip.LanguageID), File: clip.Path,
			Seconds: float64(clip.Samples) / float64(train.SampleRate), Keys: map[string]string{},
		}
		for _, in := range r.plan.Stages.Resolved.Instances {
			if in.Stage.Kind == manifest.Augment {
				if in.Chosen() {
					drawn := choice.Row{Seed: r.plan.Config.Seed, Epoch: b.Epoch, Step: b.Step, ID: clip.ID}
					if !drawn.Gets(&in) {
						continue
					}
				}
				key := dataset.RowKey(r.plan.Config.Seed, b.Epoch, clip.ID, in.Name)
				out.Keys[in.Name] = fmt.Sprintf("%x", key[:])
			}
		}
		rows = append(rows, out)
	}
	return rows
}

// nameOf is a name of a list by its number.
func nameOf(names []string, number int32) string {
	if number < 0 || int(number) >= len(names) {
		return ""
	}
	return names[number]
}
