package report

import (
	"fmt"
	"strconv"

	"github.com/xtts-host/xtts-host/host/event"
)

// Evaluations writes eval.jsonl, one line per evaluation. Evaluations have a separate file so that every line of
// metrics.jsonl is a step. It is an event.Durable, a required sink.
type Evaluations struct {
	lines *lines
	keys  []string
}

// OpenEvaluations opens or creates eval.jsonl as OpenMetrics does metrics.jsonl. A resumed run passes the step of the
// last evaluation in its checkpoint, so that a repeated evaluation has only one line.
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

// Take appends the lines of the evaluations among events. An error names the file and the step.
func (e *Evaluations) Take(events []event.Event) error {
	for _, v := range events {
		if v, ok := v.(*event.Evaluation); ok {
			if err := e.write(v); err != nil {
				return fmt.Errorf("evaluation of step %d: %w", v.Step, err)
			}
		}
	}
	return nil
}

func (e *Evaluations) write(v *event.Evaluation) error {
	b := strconv.AppendInt(append(e.lines.buf[:0], `{"step":`...), v.Step, 10)
	b = appendFloat(append(b, `,"loss":`...), v.Loss)
	for i, key := range e.keys {
		b = appendFloat(append(b, key...), v.Metrics[i])
	}
	b = strconv.AppendInt(append(b, `,"samples":`...), int64(v.Samples), 10)
	b = appendMillis(append(b, `,"eval_ms":`...), v.Time)
	e.lines.buf = append(b, "}\n"...)
	return e.lines.write()
}

// Sync makes the lines durable.
func (e *Evaluations) Sync() error { return e.lines.sync() }

// Close closes the file. It is idempotent.
func (e *Evaluations) Close() error { return e.lines.close() }
