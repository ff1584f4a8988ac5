package report

import (
	"encoding/json"
	"fmt"

	"github.com/xtts-host/xtts-host/host/pipeline"
)

// Ledger writes ledger.jsonl, one line per optimizer step with the rows that it was trained on: whoever reads it can tell
// whether a run that was killed and resumed lost a row or trained on one twice. It is a file for tests, written only
// with --debug-dir. It belongs to one goroutine; nil does nothing.
type Ledger struct {
	lines *lines
	step  ledgerStep
}

// ledgerStep is a line.
type ledgerStep struct {
	Step    int64         `json:"step"`
	Batches []ledgerBatch `json:"batches"` // micro-batches, in order
}

// ledgerBatch names a batch as the plan does. Rows are ids of the data set, "" for an empty row.
type ledgerBatch struct {
	Epoch  int      `json:"epoch"`
	Index  int      `json:"index"`
	Bucket int      `json:"bucket"`
	Rows   []string `json:"rows"`
}

// maxStep bounds a line of the ledger, in bytes: it has the ids of a step's rows, up to 500 bytes each, so 32,000 rows fit.
const maxStep = 16 << 20

// OpenLedger opens or creates the file as OpenMetrics does metrics.jsonl: only the steps up to afterStep stay. It returns nil
// for the path "".
func OpenLedger(path string, afterStep int64) (*Ledger, error) {
	if path == "" {
		return nil, nil
	}
	lines, err := openLines(path, maxStep, upTo(afterStep))
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{lines: lines}, nil
}

// Batch notes a micro-batch of the step under way. id names a row of the data set.
func (l *Ledger) Batch(b *pipeline.Batch, id func(row int32) string) {
	if l == nil {
		return
	}
	v := ledgerBatch{Epoch: b.Epoch, Index: b.Index, Bucket: b.Bucket, Rows: make([]string, len(b.Rows))}
	for i, row := range b.Rows {
		if row >= 0 {
			v.Rows[i] = id(row)
		}
	}
	l.step.Batches = append(l.step.Batches, v)
}

// Write appends the line of a step that is over. An error names the file and the step.
func (l *Ledger) Write(step int64) error {
	if l == nil {
		return nil
	}
	l.step.Step = step
	line, err := json.Marshal(l.step)
	if err == nil {
		l.lines.buf = append(append(l.lines.buf[:0], line...), '\n')
		err = l.lines.write()
	}
	if err != nil {
		return fmt.Errorf("ledger of step %d: %w", step, err)
	}
	l.step.Batches = l.step.Batches[:0]
	return nil
}

// Sync makes the lines durable.
func (l *Ledger) Sync() error {
	if l == nil {
		return nil
	}
	return l.lines.sync()
}

// Close closes the file. It may be called again.
func (l *Ledger) Close() error {
	if l == nil {
		return nil
	}
	return l.lines.close()
}
