package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Quarantined is a rejected row of the data set.
type Quarantined struct {
	// ID names the row, Path is its recording.
	ID   string `json:"id"`
	Path string `json:"path"`
	// Reason is the reason, and Stage the part that found it: "index", "decode" or the name of a stage instance.
	Reason string `json:"reason"`
	Stage  string `json:"stage"`
	// Split is the list of the row: Train or Validation. A recording may be in both.
	Split string `json:"split"`
}

// The splits of a run's data.
const (
	Train      = "train"
	Validation = "validation"
)

// rowName identifies a row of a run: ids are unique in one list.
type rowName struct{ split, id string }

// Quarantine writes quarantine.jsonl, one line per row. It is safe for concurrent use, because any worker may reject a
// row.
type Quarantine struct {
	mu    sync.Mutex
	lines *lines
	rows  map[rowName]bool
}

// OpenQuarantine opens or creates quarantine.jsonl. Rows that it lists stay rejected and are not listed again: a clip
// that a killed run found broken is still broken. A last line without an end is removed.
func OpenQuarantine(path string, wait *files.Patience) (*Quarantine, error) {
	q := &Quarantine{rows: map[rowName]bool{}}
	var err error
	q.lines, err = openLines(path, maxLine, wait, func(line []byte) (bool, error) {
		var row Quarantined
		if err := json.Unmarshal(line, &row); err != nil {
			return false, err
		}
		if row.ID == "" {
			return false, errors.New(`"id" is missing`)
		}
		q.rows[rowName{row.Split, row.ID}] = true
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("open quarantine: %w", err)
	}
	return q, nil
}

// Add writes the line of a row and reports whether the row is new. An error names the file and the row.
func (q *Quarantine) Add(row Quarantined) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rows[rowName{row.Split, row.ID}] {
		return false, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // reasons stay readable
	if err := enc.Encode(row); err != nil {
		return false, fmt.Errorf("quarantine of row %s: %w", row.ID, err)
	}
	q.lines.buf = visible.JSON(b.Bytes())
	if err := q.lines.write(); err != nil {
		return false, fmt.Errorf("quarantine of row %s: %w", row.ID, err)
	}
	q.rows[rowName{row.Split, row.ID}] = true
	return true, nil
}

// Count returns the number of rows in the file.
func (q *Quarantine) Count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.rows)
}

// Close closes the file. It is idempotent.
func (q *Quarantine) Close() error { return q.lines.close() }
