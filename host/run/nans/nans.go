// Package nans traces a step whose loss or gradients are not finite to the operation, the rows and the clips that they
// come from (docs/nan.md). It keeps the batches under way, and runs the exported graph once more on that of such a
// step, on the CPU, while training waits. The run has the same bits with and without it, and never ends because of it.
package nans

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train/nantrace"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// How often and how long a run is traced. Training waits meanwhile.
const (
	most     = 5    // traces of a process
	apart    = 1000 // steps from one to the next
	limit    = 2 * time.Minute
	maxBytes = 512 << 20 // of the batches that are kept
)

// Config says what is traced.
type Config struct {
	Plan    *plan.Plan
	Session *session.Session
	Dir     string // of the run, on rank 0
	Ranks   *together.Ranks
	Stop    <-chan struct{} // ends a trace
	Bus     *event.Bus
	Log     *slog.Logger
}

// Tracer keeps the batches of the steps under way. A nil Tracer does nothing.
type Tracer struct {
	Config
	tooLarge bool // the batches of a step are
	traces   int
	last     int64 // step that was traced

	mu      sync.Mutex // guards batches and spare: the copier adds, the trainer takes
	batches []*kept
	spare   [][]byte
}

// kept is a batch under way.
type kept struct {
	step    int64 // counted from 0
	micro   int
	epoch   int
	tensors []ring.Tensor
	slot    []byte
	rows    []int32
	known   bool // what follows
	seed    int64
	scalars []float32
}

// New returns the tracer of a run that goes on after a step, nil if --trace-nan is off. It removes what a run has found
// in later steps, which are made again.
func New(c Config, after int64) (*Tracer, error) {
	if err := forget(c.Dir, after); err != nil {
		return nil, err
	}
	p := c.Plan
	if !p.Config.TraceNaN {
		return nil, nil
	}
	largest := 0
	for _, l := range p.Slots.Layouts {
		largest = max(largest, l.InputBytes)
	}
	underWay := p.Config.Accumulate + p.Slots.Device + 1
	return &Tracer{Config: c, tooLarge: largest*underWay > maxBytes}, nil
}

// Copied keeps a batch as it leaves the ring, on the copier's goroutine.
func (t *Tracer) Copied(b *pipeline.Batch, layout *ring.Layout, slot []byte) error {
	if t == nil || t.tooLarge || b.Eval {
		return nil
	}
	k := &kept{
		step: b.Step, micro: b.Micro, epoch: b.Epoch, rows: slices.Clone(b.Rows), tensors: layout.Tensors,
		slot: t.room(b),
	}
	for i, tensor := range k.tensors {
		if tensor.Offset >= layout.InputBytes {
			k.tensors = k.tensors[:i]
			break
		}
	}
	k.slot = append(k.slot, slot[:layout.InputBytes]...) // without the lock, for which the trainer may wait
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches = append(t.batches, k)
	return nil
}

// room returns memory for a batch, of length 0, and forgets the batch where it is built again.
func (t *Tracer) room(b *pipeline.Batch) (slot []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches = slices.DeleteFunc(t.batches, func(k *kept) bool {
		again := k.step == b.Step && k.micro == b.Micro
		if again {
			t.spare = append(t.spare, k.slot)
		}
		return again
	})
	if n := len(t.spare); n > 0 {
		slot, t.spare = t.spare[n-1][:0], t.spare[:n-1]
	}
	return slot
}

// Batch notes what the graph got with a batch.
func (t *Tracer) Batch(d *pipeline.DeviceSlot) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.batches {
		if k.step == d.Batch.Step && k.micro == d.Batch.Micro {
			k.seed, k.scalars = t.Session.Model.Scalars(d.Index)
			k.known = true
		}
	}
}

// Step traces a step that was skipped, and forgets its batches.
func (t *Tracer) Step(s *event.Step) {
	if t == nil {
		return
	}
	t.mu.Lock()
	var of []*kept
	t.batches = slices.DeleteFunc(t.batches, func(k *kept) bool {
		if k.step == s.Step-1 && k.known {
			of = append(of, k)
		}
		return k.step < s.Step
	})
	t.mu.Unlock()
	if s.Skipped && s.Samples() > 0 && t.due(s.Step) {
		t.trace(s, of)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range of {
		t.spare = append(t.spare, k.slot)
	}
}

// due reports whether a step may be traced, which makes training wait.
func (t *Tracer) due(step int64) bool {
	if t.traces >= most || t.traces > 0 && step < t.last+apart {
		return false
	}
	t.traces, t.last = t.traces+1, step
	return true
}

// forget removes the files of the steps after one.
func forget(dir string, after int64) error {
	entries, err := files.In(dir).ReadDir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if step, ok := rundir.ParseNaNFile(e.Name()); ok && step > after {
			err = errors.Join(err, files.In(dir, e.Name()).Remove())
		}
	}
	return err
}

// trace finds where it comes from, and says so on rank 0. Whatever fails is a warning.
func (t *Tracer) trace(s *event.Step, batches []*kept) {
	job := t.Bus.Begin(event.Work{Task: event.Tracing, Unit: "what is not finite"})
	defer job.End()
	began := time.Now()
	var own answer
	if t.concerned(s) {
		own = answerOf(t.find(s, batches))
	}
	all, err := together.Exchange(t.Ranks, own)
	job.End()
	if err != nil || !t.Ranks.Leads() { // a rank is missing, which ends the run
		return
	}
	found, err := origin(all)
	if err != nil {
		t.Log.Warn(report.NotFinite(s.Step) + fmt.Sprintf(", and is not traced: %v (%s)", err, t.again(s.Step)))
		return
	}
	found.Seconds = math.Round(time.Since(began).Seconds()*100) / 100
	if err := found.write(t.Dir); err != nil {
		t.Log.Warn(fmt.Sprintf("%s cannot be written: %v", rundir.NaNFile(s.Step), err))
	}
	t.Log.Warn(found.String() + " (" + t.again(s.Step) + ")")
}

// again says how the step is made again.
func (t *Tracer) again(step int64) string {
	return hint.Command(fmt.Sprintf("replay %s --step %d", hint.Path(t.Dir), step)) + " replays it"
}

// find traces the first graph of a player and the first micro-batch that is not finite.
func (t *Tracer) find(s *event.Step, batches []*kept) (*Trace, error) {
	if t.tooLarge || len(batches) == 0 {
		return nil, fmt.Errorf("the batches of a step are too large to be kept (more than %d MB)", maxBytes>>20)
	}
	if err := t.Session.Pull(); err != nil {
		return nil, err
	}
	ctx, done := t.within()
	defer done()
	var last *Trace
	for i, p := range t.Plan.Players {
		if len(s.Players) > 0 && !s.Players[i].Skipped {
			continue
		}
		g, ok := t.Plan.Bundle.Manifest.TrainingGraph(p.Name, manifest.F32)
		if !ok {
			return nil, errors.New("the bundle has no training graph in f32")
		}
		for _, k := range batches {
			found, err := nantrace.Find(ctx, nantrace.Case{
				Model: t.Plan.Bundle.Model(g.File), Dir: filepath.Dir(t.Plan.Bundle.Path(g.File)),
				Inputs: t.inputs(k), Threads: t.Plan.Threads(), Memory: available(),
			})
			if errors.Is(err, nantrace.ErrTime) {
				return nil, fmt.Errorf("%w: more than %v", err, limit)
			}
			if err != nil {
				return nil, err
			}
			last = t.result(s, p.Name, k, found)
			if last.Where != nowhere {
				return last, nil
			}
		}
	}
	return last, nil
}

// within returns the time for a trace of a step, which the user ends as well.
func (t *Tracer) within() (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-t.Stop:
			stop(exit.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { stop(nil); cancel() }
}

// inputs are those of a graph in a step that was skipped: its weights are what they were.
func (t *Tracer) inputs(k *kept) (all []nantrace.Input) {
	symbols := map[string]manifest.Shape{}
	for _, spec := range t.Plan.Bundle.Manifest.Inputs {
		symbols[spec.Name] = spec.Shape
	}
	for _, tensor := range k.tensors {
		in := nantrace.Input{
			Kind: nantrace.Batch, Name: tensor.Name, DType: tensor.DType, Shape: tensor.Shape, Data: tensor.In(k.slot),
		}
		for _, d := range symbols[tensor.Name] {
			in.Symbols = append(in.Symbols, d.Symbol)
		}
		all = append(all, in)
	}
	weights := map[string]bool{}
	for _, p := range t.Plan.Bundle.Manifest.Parameters {
		weights[p.Name] = true
	}
	for _, w := range t.Session.Model.Weights() {
		kind := nantrace.State
		if weights[w.Name] {
			kind = nantrace.Weight
		}
		all = append(all, nantrace.Input{Kind: kind, Name: w.Name, DType: w.DType, Shape: w.Shape, Data: w.Data})
	}
	number := func(name string, dtype manifest.DType, data []byte) {
		all = append(all, nantrace.Input{Kind: nantrace.Scalar, Name: name, DType: dtype, Data: data})
	}
	number("seed", manifest.I64, binary.LittleEndian.AppendUint64(nil, uint64(k.seed)))
	for i, spec := range t.Plan.Bundle.Manifest.Scalars {
		number(spec.Name, manifest.F32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(k.scalars[i])))
	}
	return all
}

// available is the memory of the machine that is free now, in bytes; 0 if it is not known.
func available() int64 {
	text, err := files.At("/proc/meminfo").Read(1 << 16)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// write writes the file of the run folder.
func (t *Trace) write(dir string) error {
	text, err := t.encode()
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(dir, rundir.NaNFile(t.Step)), text)
}
