package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/xtts-host/xtts-host/host/event"
)

// Metrics writes metrics.jsonl, one line per optimizer step, a moment later: who reads along is a quarter of a second behind. It belongs to
// one goroutine.
type Metrics struct {
	lines   *deferred
	keys    []string // `,"name":`
	history History
}

// History sums up steps: those of a run before it was resumed, or all of them. The zero value is no step.
type History struct {
	// Steps are over, Skipped of them changed nothing.
	Steps, Skipped int64
	// Samples and Frames were trained on.
	Samples, Frames int64
	// First, Last and Best (the lowest) are losses of the steps that were not skipped; 0 when there was none.
	First, Last, Best float64
}

func (h *History) add(loss float64, skipped bool, samples, frames int64) {
	h.Samples += samples
	h.Frames += frames
	if skipped {
		h.Steps++
		h.Skipped++
		return
	}
	if h.Steps == h.Skipped {
		h.First, h.Best = loss, loss
	}
	h.Steps++
	h.Last, h.Best = loss, min(h.Best, loss)
}

// fixedKeys are the keys of the lines of metrics.jsonl and eval.jsonl that no metric may have.
var fixedKeys = []string{
	"step", "epoch", "loss", "lr", "grad_norm", "step_ms", "input_wait_ms", "samples", "frames", "bucket", "skipped", "eval_ms",
}

// metricKeys returns the metrics' names as they stand in a line.
func metricKeys(names []string) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		if slices.Contains(fixedKeys, name) || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("metric %q has the name of another key of metrics.jsonl", name)
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		keys[i] = "," + string(quoted) + ":"
	}
	return keys, nil
}

// OpenMetrics opens or creates metrics.jsonl for a run with these metrics. Only the lines of steps up to afterStep
// stay, so a new run passes 0 and a resumed one the step of its checkpoint. A last line without an end, which a killed
// run may leave, goes too; any other line that is none of this package's is an error.
func OpenMetrics(path string, metrics []string, afterStep int64) (*Metrics, error) {
	m := &Metrics{}
	var err error
	if m.keys, err = metricKeys(metrics); err != nil {
		return nil, err
	}
	file, err := openLines(path, maxLine, func(line []byte) (bool, error) {
		var v struct {
			Step            *int64
			Loss            *float64
			Samples, Frames int64
		}
		if err := json.Unmarshal(line, &v); err != nil {
			return false, err
		}
		if v.Step == nil {
			return false, errNoStep
		}
		if *v.Step > afterStep {
			return false, nil
		}
		if v.Loss == nil { // skipped
			m.history.add(0, true, v.Samples, v.Frames)
		} else {
			m.history.add(*v.Loss, false, v.Samples, v.Frames)
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	m.lines = &deferred{file: file, line: m.appendLine}
	return m, nil
}

var errNoStep = errors.New(`"step" is missing`)

// upTo keeps the lines of steps up to one.
func upTo(afterStep int64) func(line []byte) (bool, error) {
	return func(line []byte) (bool, error) {
		var v struct{ Step *int64 }
		if err := json.Unmarshal(line, &v); err != nil {
			return false, err
		}
		if v.Step == nil {
			return false, errNoStep
		}
		return *v.Step <= afterStep, nil
	}
}

// History sums up the lines that stayed when the file was opened.
func (m *Metrics) History() History { return m.history }

// Write notes a step. An error is that of the line of an earlier one; it names the file.
func (m *Metrics) Write(w *event.Step) error {
	if err := m.lines.add(w); err != nil {
		return fmt.Errorf("metrics up to step %d: %w", w.Step, err)
	}
	return nil
}

func (m *Metrics) appendLine(b []byte, w *event.Step) []byte {
	b = strconv.AppendInt(append(b, `{"step":`...), w.Step, 10)
	b = strconv.AppendInt(append(b, `,"epoch":`...), int64(w.Epoch), 10)
	b = append(b, `,"loss":`...)
	if w.Skipped {
		b = append(b, "null"...)
	} else {
		b = appendFloat(b, w.Loss)
	}
	for i, key := range m.keys {
		b = append(b, key...)
		if w.Skipped {
			b = append(b, "null"...)
		} else {
			b = appendFloat(b, w.Metrics[i])
		}
	}
	b = appendFloat(append(b, `,"lr":`...), w.LR)
	b = appendFloat(append(b, `,"grad_norm":`...), w.GradNorm)
	b = appendMillis(append(b, `,"step_ms":`...), w.Time)
	b = appendMillis(append(b, `,"input_wait_ms":`...), w.InputWait)
	b = strconv.AppendInt(append(b, `,"samples":`...), int64(len(w.Rows)), 10)
	b = strconv.AppendInt(append(b, `,"frames":`...), int64(w.Frames), 10)
	b = strconv.AppendInt(append(b, `,"bucket":`...), int64(w.Bucket), 10)
	if w.Skipped {
		b = append(b, `,"skipped":true`...)
	}
	return append(b, "}\n"...)
}

// appendMillis writes a time in milliseconds, to the microsecond.
func appendMillis(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, millis(d), 'f', 3, 64)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sync makes the lines durable. A checkpoint is saved behind it, so that the steps it counts are in the file.
func (m *Metrics) Sync() error { return m.lines.sync() }

// Close closes the file. It may be called again.
func (m *Metrics) Close() error { return m.lines.close() }

// Evaluations writes eval.jsonl, one line per evaluation. They have a file of their own so that every line of
// metrics.jsonl is a step. It belongs to one goroutine.
type Evaluations struct {
	lines *lines
	keys  []string
}

// OpenEvaluations opens or creates eval.jsonl as OpenMetrics does metrics.jsonl. A resumed run passes the step of the
// last evaluation that its checkpoint knows: one that is made again then has one line.
func OpenEvaluations(path string, metrics []string, afterStep int64) (*Evaluations, error) {
	keys, err := metricKeys(metrics)
	if err != nil {
		return nil, err
	}
	l, err := openLines(path, maxLine, upTo(afterStep))
	if err != nil {
		return nil, fmt.Errorf("open evaluations: %w", err)
	}
	return &Evaluations{l, keys}, nil
}

// Write appends the line of an evaluation. An error names the file and the step.
func (e *Evaluations) Write(v *event.Evaluation) error {
	b := strconv.AppendInt(append(e.lines.buf[:0], `{"step":`...), v.Step, 10)
	b = appendFloat(append(b, `,"loss":`...), v.Loss)
	for i, key := range e.keys {
		b = appendFloat(append(b, key...), v.Metrics[i])
	}
	b = strconv.AppendInt(append(b, `,"samples":`...), int64(v.Samples), 10)
	b = appendMillis(append(b, `,"eval_ms":`...), v.Time)
	e.lines.buf = append(b, "}\n"...)
	if err := e.lines.write(); err != nil {
		return fmt.Errorf("evaluation of step %d: %w", v.Step, err)
	}
	return nil
}

// Sync makes the lines durable.
func (e *Evaluations) Sync() error { return e.lines.sync() }

// Close closes the file. It may be called again.
func (e *Evaluations) Close() error { return e.lines.close() }
