package report

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Ledger writes ledger.jsonl, one line per optimizer step with the rows that it was trained on. It shows whether a run
// that was killed and resumed has lost a row or trained on a row twice. It is a file for tests, written only with
// --debug-dir. It is an event.Durable, a required sink. A nil Ledger does nothing.
type Ledger struct {
	lines *lines

	mu      sync.Mutex // guards batches
	batches []ledgerBatch
}

// ledgerStep is a line.
type ledgerStep struct {
	Step    int64         `json:"step"`
	Batches []ledgerBatch `json:"batches"` // micro-batches, in order
}

// ledgerBatch names a batch as the data plan does. Rows are ids of the data set, "" for an empty row.
type ledgerBatch struct {
	Epoch  int      `json:"epoch"`
	Index  int      `json:"index"`
	Bucket int      `json:"bucket"`
	Rows   []string `json:"rows"`

	step int64
}

// maxStep limits a line of the ledger, in bytes: it has the ids of a step's rows, up to 500 bytes each, so 32,000 rows
// fit.
const maxStep = 16 << 20

// OpenLedger opens or creates the file as OpenMetrics does metrics.jsonl: only the steps up to afterStep stay. It
// returns nil for the path "".
func OpenLedger(path string, afterStep int64, wait *files.Patience) (*Ledger, error) {
	if path == "" {
		return nil, nil
	}
	lines, err := openLines(path, maxStep, wait, upTo(afterStep))
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{lines: lines}, nil
}

// Batch records a computed micro-batch, before its step is published. id names a row of the data set.
func (l *Ledger) Batch(b *pipeline.Batch, id func(row int32) string) {
	if l == nil {
		return
	}
	v := ledgerBatch{step: b.Step + 1, Epoch: b.Epoch, Index: b.Index, Bucket: b.Bucket, Rows: make([]string,
		len(b.Rows))}
	for i, row := range b.Rows {
		if row >= 0 {
			v.Rows[i] = id(row)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, v)
}

// Take appends the lines of the steps among events. An error names the file and the step.
func (l *Ledger) Take(events []event.Event) error {
	for _, e := range events {
		if s, ok := e.(*event.Step); ok {
			if err := l.write(s.Step); err != nil {
				return fmt.Errorf("ledger of step %d: %w", s.Step, err)
			}
		}
	}
	return nil
}

func (l *Ledger) write(step int64) error {
	l.mu.Lock()
	n := 0
	for n < len(l.batches) && l.batches[n].step == step {
		n++
	}
	line, err := json.Marshal(ledgerStep{step, l.batches[:n]})
	l.batches = l.batches[n:]
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.lines.buf = append(append(l.lines.buf[:0], line...), '\n')
	return l.lines.write()
}

// Sync makes the lines durable.
func (l *Ledger) Sync() error { return l.lines.sync() }

// Close closes the file. It is idempotent.
func (l *Ledger) Close() error { return l.lines.close() }
