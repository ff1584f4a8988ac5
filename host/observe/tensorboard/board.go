package tensorboard

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/retain"
)

// Config configures a Board.
type Config struct {
	Dir string // the run folder
	// Metrics are the names of those of a step.
	Metrics []string
	// Step and EvaluatedStep are where the run begins, and its last evaluation before. Skipped counts its skipped steps
	// so far, and Best is the step of its best evaluation, 0 for none.
	Step, EvaluatedStep, Skipped, Best int64
	// Settings is the text of the run's config.yaml.
	Settings string
	// Keep is the number of evaluations whose media stay, besides the best one; 0 means UsualKeep.
	Keep int
}

// UsualKeep is the number of evaluations whose media the board has unless a run asks for another: TensorBoard shows
// the last ten pictures and sounds of a name.
const UsualKeep = 10

// Board writes the event files. It is a best-effort sink.
type Board struct {
	Config
	dir   files.Path
	have  *there
	now   func() time.Time
	begun bool // the first file of this process

	file *files.File // of steps; nil before its first record
	end  int64       // of its last complete record
	buf  []byte      // the records of a Take
	m    message

	step, total int64 // the present and the last one
	rate        event.Rate
	memory      map[string]int64 // by role, the step of the last value
	warned      int
	pending     []event.Event // evaluations whose media are to be written
}

// Open cuts the files of a run back to its checkpoint. It makes no file.
func Open(c Config) (*Board, error) {
	b := &Board{
		Config: c, dir: files.In(c.Dir, rundir.BoardFolder), now: time.Now, step: c.Step, memory: map[string]int64{},
	}
	if b.Keep == 0 {
		b.Keep = UsualKeep
	}
	var err error
	if b.have, err = cut(b.dir, c.Step, c.EvaluatedStep); err != nil {
		return nil, fmt.Errorf("cut back the curves of TensorBoard: %w", err)
	}
	return b, nil
}

// Take writes what events say. An error ends the board.
func (b *Board) Take(events []event.Event) error {
	for _, e := range events {
		if err := b.take(e); err != nil {
			return err
		}
	}
	return b.flush()
}

func (b *Board) take(e event.Event) error {
	switch e := e.(type) {
	case *event.Start:
		b.total = e.Total
		b.record(b.step, func(m *message) { m.text(block(b.Settings), "run", "config") })
	case *event.Step:
		if err := b.writeMedia(); err != nil { // of the evaluation before
			return err
		}
		b.step = e.Step
		b.takeStep(e)
	case *event.Memory:
		b.takeMemory(e)
	case *event.Evaluation:
		if e.Best {
			b.Best = e.Step
		}
		b.record(e.Step, func(m *message) {
			m.scalar(e.Loss, evalGroup, "loss")
			for i, v := range e.Metrics {
				m.scalar(v, evalGroup, b.Metrics[i])
			}
		})
	case *event.Spoken:
		b.takeSpoken(e)
	case *event.Probed:
		b.takeProbed(e)
	case *event.Warning:
		if b.warned++; b.warned <= mostWarnings {
			b.record(b.step, func(m *message) { m.text(escape(e.String()), "run", "warnings") })
		}
	}
	return nil
}

// mostWarnings bounds the warnings of a process.
const mostWarnings = 100

// The groups of names: TensorBoard shows a section for each.
const (
	trainGroup  = "train"
	speedGroup  = "speed"
	gpuGroup    = "gpu"
	evalGroup   = "eval"
	spokenGroup = "spoken"
	probeGroup  = "probes"
)

// ofEvaluation reports whether a tag is one that evaluations write.
func ofEvaluation(tag string) bool {
	group, _, _ := strings.Cut(tag, "/")
	return group == evalGroup || group == spokenGroup || group == probeGroup
}

// Every is the number of steps between two that the board has, at a step: each up to step 10,000, each tenth up to
// 100,000, and so on. A run of a million steps has 28,000 of them. TensorBoard shows a thousand of a curve, and
// metrics.jsonl has all.
func Every(step int64) int64 {
	every := int64(1)
	for step > 10_000*every {
		every *= 10
	}
	return every
}

func (b *Board) takeStep(s *event.Step) {
	b.rate.Step(s)
	if s.Skipped {
		b.Skipped++
	}
	if s.Step%Every(s.Step) != 0 && s.Step != b.total {
		return
	}
	b.record(s.Step, func(m *message) {
		if !s.Skipped {
			m.scalar(s.Loss, trainGroup, "loss")
			for i, v := range s.Metrics {
				m.scalar(v, trainGroup, b.Metrics[i])
			}
		}
		m.scalar(s.LR, trainGroup, "lr")
		if finite(s.GradNorm) {
			m.scalar(s.GradNorm, trainGroup, "grad_norm")
		}
		for _, p := range s.Players[:max(0, len(s.Players)-1)] {
			m.scalar(p.LR, trainGroup, "lr."+p.Name)
			if finite(p.GradNorm) {
				m.scalar(p.GradNorm, trainGroup, "grad_norm."+p.Name)
			}
		}
		m.scalar(float64(b.Skipped), trainGroup, "skipped_steps")
		m.scalar(millis(s.Time), speedGroup, "step_ms")
		m.scalar(millis(s.InputWait), speedGroup, "input_wait_ms")
		if speed := b.rate.Speed(s.Step, 0).StepsPerSecond; speed > 0 {
			m.scalar(speed, speedGroup, "steps_per_second")
		}
	})
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// takeMemory writes the memory of a role no more often than steps.
func (b *Board) takeMemory(e *event.Memory) {
	if last, ok := b.memory[e.Role]; ok && b.step < last+Every(b.step) {
		return
	}
	b.memory[e.Role] = b.step
	role := strings.ToLower(e.Role)
	b.record(b.step, func(m *message) {
		m.scalar(float64(e.Used)/(1<<20), gpuGroup, role+"_memory_mib")
		m.scalar(float64(e.Limit)/(1<<20), gpuGroup, role+"_memory_limit_mib")
	})
}

// record adds a record of a step to what the next flush writes.
func (b *Board) record(step int64, fill func(m *message)) {
	b.m.begin(step, b.now())
	if fill(&b.m); b.m.values > 0 {
		b.buf = appendRecord(b.buf, b.m.b)
	}
}

// flush writes the records with one write. After a failure, the file ends after a complete record.
func (b *Board) flush() (err error) {
	if len(b.buf) == 0 {
		return nil
	}
	if b.file == nil {
		if b.file, b.end, err = b.create(file{}); err != nil {
			return err
		}
	}
	n, err := b.file.Write(b.buf)
	if err != nil {
		path := b.file.Name()
		err = disk.Explain(err, path, int64(len(b.buf)-n)) // before the room of the records is free again
		return errors.Join(err, b.file.Truncate(b.end))
	}
	b.end += int64(n)
	b.buf = b.buf[:0]
	return nil
}

// create makes the next file and begins it. It returns its length.
func (b *Board) create(name file) (*files.File, int64, error) {
	if err := b.dir.Mkdir(); err != nil && !errors.Is(err, fs.ErrExist) { // not the run's: it may have been removed
		return nil, 0, disk.Explain(err, b.dir.String(), 1)
	}
	name.number = b.have.next
	path := b.dir.Join(name.String())
	f, err := path.New()
	if err != nil {
		return nil, 0, disk.Explain(err, path.String(), 1)
	}
	b.have.next++
	head := appendRecord(nil, versionEvent(b.now()))
	if !b.begun {
		head = appendRecord(head, startEvent(b.Step+1, b.now()))
	}
	if _, err := f.Write(head); err != nil {
		err = disk.Explain(err, path.String(), int64(len(head)))
		return nil, 0, errors.Join(err, f.Close(), path.Remove())
	}
	b.begun = true
	return f, int64(len(head)), nil
}

// endFile closes the file of steps: what comes next goes to another one.
func (b *Board) endFile() error {
	if b.file == nil {
		return nil
	}
	f := b.file
	b.file = nil
	return f.Close()
}

// Close writes the media of a last evaluation and closes the file.
func (b *Board) Close() error {
	return errors.Join(b.flush(), b.writeMedia(), b.endFile())
}

// writeMedia writes the media of the pending evaluation to a file of their own, after everything before.
func (b *Board) writeMedia() error {
	if len(b.pending) == 0 {
		return nil
	}
	pending := b.pending
	b.pending = nil
	if err := errors.Join(b.flush(), b.endFile()); err != nil {
		return err
	}
	step := stepOf(pending[0])
	f, _, err := b.create(file{media: true, step: step})
	if err != nil {
		return err
	}
	path := files.At(f.Name())
	w := &mediaWriter{Board: b, to: f}
	for _, e := range pending {
		if err == nil {
			err = w.write(e)
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(disk.Explain(err, path.String(), 1), path.Remove())
	}
	b.have.media[step] = path
	return b.forget()
}

// forget removes the media of old evaluations.
func (b *Board) forget() (err error) {
	var steps []int64
	for step := range b.have.media {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	for _, step := range retain.Old(steps, b.Keep, b.Best) {
		if e := b.have.media[step].Remove(); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		delete(b.have.media, step)
	}
	return err
}
