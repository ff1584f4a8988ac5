package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Metrics is the event.Durable that writes metrics.jsonl, one line per optimizer step. It is a required sink.
type Metrics struct {
	lines   *lines
	keys    []string // `,"name":`
	history History
	recent  [][]float64
	before  Divergence // of the lines that were kept
}

// fixedKeys are the keys of the lines of metrics.jsonl and eval.jsonl. No metric may have such a name.
var fixedKeys = []string{
	"step", "epoch", "loss", "lr", "grad_norm", "step_ms", "input_wait_ms", "samples", "frames", "bucket", "skipped",
	"skipped_players", "eval_ms",
}

// rateKey and normKey begin the keys of the learning rate and of the gradient norm of a player other than the last.
const (
	rateKey = "lr."
	normKey = "grad_norm."
)

// metricKeys returns the metrics' names as keys of a line.
func metricKeys(names []string) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		if slices.Contains(fixedKeys, name) || strings.HasPrefix(name, rateKey) || strings.HasPrefix(name, normKey) ||
			slices.Contains(names[:i], name) {
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

// OpenMetrics opens or creates metrics.jsonl for a run with these metrics. It keeps only the lines of steps up to
// afterStep: a new run passes 0, a resumed one the step of its checkpoint. It also removes a last line without an end,
// which a killed run may leave. Any other line that this package cannot have written is an error.
func OpenMetrics(path string, metrics []string, afterStep int64, wait *files.Patience) (*Metrics, error) {
	m := &Metrics{recent: make([][]float64, len(metrics))}
	var err error
	var last [][]byte // lines of steps that were not skipped
	if m.keys, err = metricKeys(metrics); err != nil {
		return nil, err
	}
	m.lines, err = openLines(path, maxLine, wait, func(line []byte) (bool, error) {
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
			m.before.take(*v.Step, *v.Loss, false)
			last = append(last, slices.Clone(line))
			last = last[max(0, len(last)-recentSteps):]
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	for _, line := range last {
		if err := m.readRecent(line, metrics); err != nil {
			return nil, errors.Join(fmt.Errorf("open metrics: %s: %w", path, err), m.Close())
		}
	}
	return m, nil
}

// readRecent takes the metrics of a line.
func (m *Metrics) readRecent(line []byte, metrics []string) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return err
	}
	for i, name := range metrics {
		if text, ok := values[name]; ok {
			var v Float
			if err := json.Unmarshal(text, &v); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m.recent[i] = appendRecent(m.recent[i], float64(v))
		}
	}
	return nil
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

// History sums up the lines that were kept when the file was opened.
func (m *Metrics) History() History { return m.history }

// Divergence continues that of the steps of these lines.
func (m *Metrics) Divergence() Divergence { return m.before.Next() }

// Recent holds the values of each metric in the last of these lines.
func (m *Metrics) Recent() [][]float64 { return m.recent }

// Take appends the lines of the steps among events with one write. An error names the file and the last step.
func (m *Metrics) Take(events []event.Event) error {
	text, last := m.lines.buf[:0], int64(0)
	var tooLong error
	for _, e := range events {
		s, ok := e.(*event.Step)
		if !ok {
			continue
		}
		begin := len(text)
		text = m.appendLine(text, s)
		last = s.Step
		if tooLong = m.lines.fits(text[begin:]); tooLong != nil {
			text = text[:begin]
			break
		}
	}
	m.lines.buf = text
	if len(text) == 0 && tooLong == nil {
		return nil
	}
	err := m.lines.append(text)
	if err == nil {
		err = tooLong
	}
	if err != nil {
		return fmt.Errorf("metrics up to step %d: %w", last, err)
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
	others := w.Players[:max(0, len(w.Players)-1)]
	for _, p := range others {
		b = appendFloat(append(append(append(b, `,"`+rateKey...), p.Name...), `":`...), p.LR)
	}
	b = appendFloat(append(b, `,"grad_norm":`...), w.GradNorm)
	for _, p := range others {
		b = appendFloat(append(append(append(b, `,"`+normKey...), p.Name...), `":`...), p.GradNorm)
	}
	b = appendMillis(append(b, `,"step_ms":`...), w.Time)
	b = appendMillis(append(b, `,"input_wait_ms":`...), w.InputWait)
	b = strconv.AppendInt(append(b, `,"samples":`...), int64(w.Samples()), 10)
	b = strconv.AppendInt(append(b, `,"frames":`...), int64(w.Frames), 10)
	b = strconv.AppendInt(append(b, `,"bucket":`...), int64(w.Bucket), 10)
	if w.Skipped {
		b = append(b, `,"skipped":true`...)
	}
	if w.Skipped && len(w.Players) > 0 {
		list, _ := json.Marshal(w.SkippedPlayers()) // of strings: no error
		b = append(append(b, `,"skipped_players":`...), list...)
	}
	return append(b, "}\n"...)
}

// appendMillis writes a time in milliseconds, to the microsecond.
func appendMillis(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, millis(d), 'f', 3, 64)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sync makes the lines durable. It is called before each checkpoint, so that the file has all steps that the checkpoint
// counts.
func (m *Metrics) Sync() error { return m.lines.sync() }

// Close closes the file. It is idempotent.
func (m *Metrics) Close() error { return m.lines.close() }
