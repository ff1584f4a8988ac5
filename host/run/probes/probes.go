// Package probes shows tensors of a model at the evaluations of a run: probes of the bundle, gradients and parameters
// (docs/probes.md). They become lines of probes.jsonl, and pictures:
//
//	p := probes.Begin(loop, runDir)
//	p.Take(slot)      // the first batch of an evaluation
//	p.Evaluated(200)  // probes.jsonl, probes/step-000200/attention.0.png
//
// Training has the same bits with and without. A failure has a warning, and the run goes on.
package probes

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/selection"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Config configures a Prober.
type Config struct {
	selection.Shown
	Model *train.Model
	// Last returns the gradients of the last batch, or with several ranks those of the last step.
	Last    func() ([]checkpoint.Tensor, error)
	Bundle  *ortgraphs.Bundle
	Threads int
	Dir     string // of the run
	// Step and EvaluatedStep are where the run begins, and its last evaluation before.
	Step, EvaluatedStep int64
	Log                 *slog.Logger
	Bus                 *event.Bus
	Spent               func(began, ended time.Time)
}

// Prober shows the tensors of a run. The trainer's goroutine calls it; a nil Prober does nothing.
type Prober struct {
	Config
	probing    *train.Probing // nil without probes
	lines      *report.ProbedLines
	lengths    map[string]string // the inputs that have the lengths of an axis, by its symbol
	counts     func(input string) []int32
	batch      int   // rows of the batch
	rows       []int // those that are not empty
	taken      bool
	incomplete int
}

// Open opens the probe graph. A resumed run makes what follows its last evaluation again. Without a selection, the
// prober is nil.
func Open(c Config) (_ *Prober, err error) {
	if c.Count() == 0 {
		return nil, cut(c)
	}
	p := &Prober{Config: c, lengths: map[string]string{}}
	if p.lines, err = report.OpenProbed(files.In(c.Dir, rundir.ProbesFile).String(), c.EvaluatedStep); err != nil {
		return nil, err
	}
	if problem := p.lines.Problem(); problem != "" {
		c.Log.Warn(problem)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := forget(c.Dir, c.EvaluatedStep); err != nil {
		return nil, err
	}
	for _, t := range c.Bundle.Manifest.Inputs {
		if t.Lengths != "" && len(t.Shape) > 1 && p.lengths[t.Shape[1].Symbol] == "" {
			p.lengths[t.Shape[1].Symbol] = t.Lengths
		}
	}
	var names []string
	for _, probe := range c.Probes {
		names = append(names, probe.Name)
	}
	if len(names) > 0 {
		p.probing, err = train.NewProbing(c.Model, c.Bundle, names, c.Threads)
		p.counts = p.probing.Taken
	}
	return p, err
}

// cut removes what follows the last evaluation, in a run that shows nothing any more.
func cut(c Config) error {
	_, err := files.In(c.Dir, rundir.ProbesFile).Lstat()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lines, err := report.OpenProbed(files.In(c.Dir, rundir.ProbesFile).String(), c.EvaluatedStep)
	if err != nil {
		return err
	}
	if problem := lines.Problem(); problem != "" {
		c.Log.Warn(problem)
	}
	return errors.Join(lines.Close(), forget(c.Dir, c.EvaluatedStep))
}

// forget removes the pictures after a step.
func forget(dir string, after int64) error {
	return rundir.RemoveAfter(files.In(dir, rundir.ProbesFolder), after)
}

// Close releases the graph and closes the file. It is idempotent.
func (p *Prober) Close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.probing.Close(), p.lines.Close())
}

// Take keeps the first batch of an evaluation, which is in a device slot.
func (p *Prober) Take(d *pipeline.DeviceSlot) {
	if p.taken, p.rows = false, p.rows[:0]; p.probing == nil {
		return
	}
	if err := p.probing.Take(d.Index, d.Batch.Bucket); err != nil {
		p.warn(fmt.Sprintf("the probes of an evaluation are missing: %v", err))
		return
	}
	p.batch = len(d.Batch.Rows)
	for i, row := range d.Batch.Rows {
		if row >= 0 {
			p.rows = append(p.rows, i)
		}
	}
	p.taken = true
}

// Evaluated shows the tensors after the evaluation of a step.
func (p *Prober) Evaluated(step int64) {
	if p == nil {
		return
	}
	defer p.Bus.Begin(event.Work{Task: event.Evaluating, Unit: "probes"}).End()
	began, e := time.Now(), &event.Probed{Step: step}
	var failed error
	fail := func(err error) { failed = cmp.Or(failed, err) } // one warning
	if p.taken {
		if err := p.probing.Run(func(name string, shape []int, values []float32) error {
			fail(p.probe(e, name, array{shape, values}))
			return nil
		}); err != nil {
			fail(err)
		}
	}
	fail(p.gradients(e))
	fail(p.parameters(e))
	slices.SortFunc(e.Tensors, func(a, b event.Probe) int { return cmp.Compare(a.Name, b.Name) })
	if err := p.lines.Write(e); err != nil {
		fail(err)
	}
	p.Spent(began, time.Now())
	p.Bus.Publish(e)
	if failed != nil {
		p.incomplete++
		p.warn(report.NotComplete("probes", step, failed))
	}
}

func (p *Prober) warn(text string) { p.Log.Warn(text) }

// probe measures a probe in the rows that are not empty, up to their lengths, and draws the first of them.
func (p *Prober) probe(e *event.Probed, name string, a array) error {
	out := event.Probe{Name: name, Shape: slices.Clone(a.shape)}
	i := slices.IndexFunc(p.Probes, func(o manifest.Probe) bool { return o.Name == name })
	spec, shown := p.Probes[i].Shape, a
	if err := a.is(spec, p.batch); err != nil {
		return fmt.Errorf("probe %s: %w", name, err)
	}
	if len(spec) > 0 && spec[0].Symbol == manifest.BatchSymbol {
		spec = spec[1:]
		all := array{}
		for n, row := range p.rows {
			part := a.row(row).cut(p.limits(spec, a.shape[1:], row))
			if all.values = append(all.values, part.values...); n == 0 {
				shown = part
			}
		}
		if a = all; len(p.rows) == 0 {
			shown = array{}
		}
	}
	measure(&out, a.values)
	png, err := draw(shown, spec)
	if err == nil {
		out.Picture, err = p.keep(e.Step, name, png)
	}
	e.Tensors = append(e.Tensors, out)
	return err
}

// keep writes a picture, if there is one, and returns its path in the run folder.
func (p *Prober) keep(step int64, name string, png []byte) (string, error) {
	if png == nil {
		return "", nil
	}
	name += ".png"
	if err := p.write(files.In(p.Dir, rundir.ProbesFolder, rundir.Step(step), name), png); err != nil {
		return "", err
	}
	return path.Join(rundir.ProbesFolder, rundir.Step(step), name), nil
}

// limits are the lengths of a row's axes.
func (p *Prober) limits(spec manifest.Shape, shape []int, row int) []int {
	limits := slices.Clone(shape)
	for axis, d := range spec {
		if lengths := p.counts(p.lengths[d.Symbol]); d.Symbol != "" && row < len(lengths) {
			limits[axis] = min(limits[axis], max(0, int(lengths[row])))
		}
	}
	return limits
}

// write writes a picture. The run folder must be there: it may have been removed.
func (p *Prober) write(file files.Path, png []byte) error {
	for _, folder := range []files.Path{file.Parent().Parent(), file.Parent()} {
		if err := folder.Mkdir(); err != nil && !errors.Is(err, fs.ErrExist) {
			return disk.Explain(err, folder.String(), 1)
		}
	}
	return disk.Explain(file.Write(png), file.String(), int64(len(png)))
}

// gradients measures those of the last batch that was trained on, if there is one since the run began.
func (p *Prober) gradients(e *event.Probed) error {
	if len(p.Gradients) == 0 || e.Step <= p.Step {
		return nil
	}
	all, err := p.Last()
	for _, t := range all {
		if slices.Contains(p.Gradients, t.Name) {
			err = cmp.Or(err, p.show(e, selection.Gradient, t.Name, array{t.Shape, numbers(t.DType, t.Data)}))
		}
	}
	return err
}

// parameters measures those that the evaluation has read.
func (p *Prober) parameters(e *event.Probed) (failed error) {
	for _, name := range p.Parameters {
		info, _ := p.Model.Evaluated.Tensor(name)
		data := make([]byte, info.Bytes)
		if err := p.Model.Evaluated.Read(name, data); err != nil {
			return err
		}
		failed = cmp.Or(failed, p.show(e, selection.Parameter, name, array{info.Shape, numbers(manifest.F32, data)}))
	}
	return failed
}

// drawable are the names of parameters that may be those of a file.
var drawable = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,150}$`)

// show measures a parameter, or its gradient, and draws it. The file has a plus sign, which no name of a probe has.
func (p *Prober) show(e *event.Probed, kind, name string, a array) error {
	out := event.Probe{Name: kind + name, Shape: slices.Clone(a.shape)}
	measure(&out, a.values)
	var err error
	if drawable.MatchString(name) {
		var png []byte
		if png, err = drawWeights(a); err == nil {
			out.Picture, err = p.keep(e.Step, strings.TrimSuffix(kind, "/")+"+"+name, png)
		}
	}
	e.Tensors = append(e.Tensors, out)
	return err
}

// numbers returns the values of a tensor in f32 or bf16.
func numbers(dtype manifest.DType, data []byte) []float32 {
	if dtype == manifest.BF16 {
		out := make([]float32, len(data)/2)
		for i := range out {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
		return out
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// Report describes the probes; nil for a nil Prober.
func (p *Prober) Report() *report.Probed {
	if p == nil {
		return nil
	}
	return &report.Probed{
		File: rundir.ProbesFile, Folder: rundir.ProbesFolder, Tensors: p.Count(), Evaluations: p.lines.Evaluations(),
		Incomplete: p.incomplete,
	}
}
