package report

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Evaluations writes eval.jsonl, one line per evaluation. Evaluations have a separate file so that every line of
// metrics.jsonl is a step. It is an event.Durable, a required sink.
type Evaluations struct {
	lines *lines
	keys  []string
	last  *Evaluation
	kept  map[int64]*Evaluation
}

// OpenEvaluations opens or creates eval.jsonl as OpenMetrics does metrics.jsonl. A resumed run passes the step of the
// last evaluation in its checkpoint, so that a repeated evaluation has only one line.
func OpenEvaluations(path string, metrics []string, afterStep int64, wait *files.Patience) (*Evaluations, error) {
	keys, err := metricKeys(metrics)
	if err != nil {
		return nil, err
	}
	e := &Evaluations{keys: keys, kept: map[int64]*Evaluation{}}
	keep := upTo(afterStep)
	e.lines, err = openLines(path, maxLine, wait, func(line []byte) (bool, error) {
		ok, err := keep(line)
		if ok {
			err = e.read(line, metrics)
		}
		return ok, err
	})
	if err != nil {
		return nil, fmt.Errorf("open evaluations: %w", err)
	}
	return e, nil
}

// read takes a line that stays.
func (e *Evaluations) read(line []byte, metrics []string) error {
	var fixed struct {
		Step    int64
		Loss    Float
		Samples int
	}
	if err := json.Unmarshal(line, &fixed); err != nil {
		return err
	}
	v := &Evaluation{Step: fixed.Step, Loss: fixed.Loss, Metrics: map[string]Float{}, Samples: fixed.Samples}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return err
	}
	for _, name := range metrics {
		if text, ok := values[name]; ok {
			var f Float
			if err := json.Unmarshal(text, &f); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			v.Metrics[name] = f
		}
	}
	e.last = v.after(e.last)
	e.kept[v.Step] = v
	return nil
}

// Last is the last of the lines that stayed when the file was opened, nil without one.
func (e *Evaluations) Last() *Evaluation { return e.last }

// At is the evaluation after a step, of the lines that stayed; nil without one.
func (e *Evaluations) At(step int64) *Evaluation { return e.kept[step] }

// after sets the best evaluation of one that comes after others, of which before is the last.
func (e *Evaluation) after(before *Evaluation) *Evaluation {
	if before != nil && before.Best.Loss <= e.Loss {
		e.Best = before.Best
	} else {
		e.Best = Best{Step: e.Step, Loss: e.Loss}
	}
	return e
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
