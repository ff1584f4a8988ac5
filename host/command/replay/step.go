package replay

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// step is step.json.
type step struct {
	Run       string                  `json:"run"`
	Step      int64                   `json:"step"`
	Epoch     int                     `json:"epoch"`
	Bundle    string                  `json:"bundle"` // folder, or builtin:NAME
	Model     string                  `json:"model"`
	Precision string                  `json:"precision"`
	Device    string                  `json:"device"`
	From      from                    `json:"from"`
	Verified  verified                `json:"verified"`
	Skipped   bool                    `json:"skipped"`
	Loss      report.Float            `json:"loss"`
	Metrics   map[string]report.Float `json:"metrics"`
	LR        float64                 `json:"lr"`
	GradNorm  report.Float            `json:"grad_norm"`
	Players   []player                `json:"players,omitempty"`
	Weights   string                  `json:"weights"`
	Gradients string                  `json:"gradients"`
	After     string                  `json:"weights_after"`
	Stages    []stage                 `json:"stages"`
	Batches   []batchOf               `json:"batches"`
}

// from is the state that the replay began with.
type from struct {
	Step    int64  `json:"step"`
	Weights string `json:"weights"`
}

// verified says how many steps were compared with the run's lines, and the first that differs.
type verified struct {
	Steps   int         `json:"steps"`
	Differs *difference `json:"differs"`
}

type player struct {
	Name     string       `json:"name"`
	LR       float64      `json:"lr"`
	GradNorm report.Float `json:"grad_norm"`
	Skipped  bool         `json:"skipped"`
}

type stage struct {
	Name    string         `json:"name"`
	Stage   string         `json:"stage"`
	Augment bool           `json:"augment"`
	Config  map[string]any `json:"config"`
}

// batchOf is a batch of the step.
type batchOf struct {
	File    string             `json:"file"`
	Made    string             `json:"intermediates,omitempty"`
	Index   int                `json:"index"`
	Bucket  int                `json:"bucket"`
	Seed    int64              `json:"seed"`
	Scalars map[string]float64 `json:"scalars"`
	Inputs  []tensor           `json:"inputs"`
	Rows    []row              `json:"rows"`
	LeftOut []string           `json:"left_out,omitempty"`
}

type tensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// row is a row of a batch.
type row struct {
	Place    int               `json:"place"`
	Empty    bool              `json:"empty,omitempty"`
	ID       string            `json:"id,omitempty"`
	Text     string            `json:"text,omitempty"`
	Speaker  string            `json:"speaker,omitempty"`
	Language string            `json:"language,omitempty"`
	File     string            `json:"file,omitempty"`
	Seconds  float64           `json:"seconds,omitempty"`
	Keys     map[string]string `json:"keys,omitempty"`
}

// write writes what is left of the folder.
func (r *replay) write() error {
	p, done := r.plan, r.kept.done
	out := step{
		Run: real(r.past.run), Step: done.Step, Epoch: done.Epoch, Bundle: p.Config.Graph,
		Model: p.Bundle.Manifest.Name, Precision: string(cmp.Or(p.Precision.Graph, manifest.F32)), Device: p.Device(),
		From: from{r.past.step, r.began()}, Verified: verified{r.past.verified, r.past.differs}, Skipped: done.Skipped,
		Loss: report.Float(done.Loss), Metrics: map[string]report.Float{}, LR: done.LR,
		GradNorm: report.Float(done.GradNorm), Weights: weightsFile, Gradients: gradientsFile, After: afterFile,
	}
	for i, name := range p.Bundle.Manifest.Metrics() {
		out.Metrics[name] = report.Float(done.Metrics[i])
	}
	for _, one := range done.Players {
		out.Players = append(out.Players, player{one.Name, one.LR, report.Float(one.GradNorm), one.Skipped})
	}
	for _, in := range p.Stages.Resolved.Instances {
		out.Stages = append(out.Stages, stage{in.Name, in.Stage.Name, in.Stage.Kind == manifest.Augment, in.Config})
	}
	for i, m := range r.kept.micro {
		if m == nil {
			continue // the last step of an epoch may have fewer
		}
		b, err := r.writeBatch(i)
		if err != nil {
			return err
		}
		out.Batches = append(out.Batches, b)
	}
	return r.out.json(stepFile, out)
}

// began names the weights that the replay began with.
func (r *replay) began() string {
	switch start := &r.plan.Start; {
	case r.past.step > 0:
		return real(start.Resumed.Path)
	case start.Weights != nil:
		return real(start.Weights.Path)
	}
	return r.plan.Config.Graph
}

// writeBatch writes the tensors of a batch.
func (r *replay) writeBatch(number int) (batchOf, error) {
	m := r.kept.micro[number]
	b := batchOf{
		File: fmt.Sprintf("batch-%02d.safetensors", number), Index: m.batch.Index, Bucket: m.batch.Bucket,
		Seed: m.seed, Scalars: map[string]float64{}, Rows: r.rows(&m.batch),
	}
	for _, at := range m.batch.LeftOut {
		b.LeftOut = append(b.LeftOut, r.plan.TrainingRow(at))
	}
	inputs := m.stored(m.tensors[:m.inputs])
	inputs = append(inputs, scalarTensor("seed", manifest.I64, binary.LittleEndian.AppendUint64(nil, uint64(m.seed))))
	for i, spec := range r.plan.Bundle.Manifest.Scalars {
		b.Scalars[spec.Name] = float64(m.scalars[i])
		inputs = append(inputs, scalarTensor(spec.Name, manifest.F32,
			binary.LittleEndian.AppendUint32(nil, math.Float32bits(m.scalars[i]))))
	}
	b.Inputs = described(inputs)
	if err := r.out.tensors(b.File, inputs, nil); err != nil {
		return b, err
	}
	if more := m.stored(m.tensors[m.inputs:]); len(more) > 0 {
		b.Made = fmt.Sprintf("intermediates-%02d.safetensors", number)
		if err := r.out.tensors(b.Made, more, nil); err != nil {
			return b, err
		}
	}
	return b, nil
}

// stored are tensors of the slot as a file has them.
func (m *micro) stored(all []ring.Tensor) (out []safetensors.Tensor) {
	for _, t := range all {
		out = append(out, safetensors.Tensor{
			Name: t.Name, DType: safetensors.TypeOf(t.DType), Shape: t.Shape, Data: t.In(m.slot),
		})
	}
	return out
}
