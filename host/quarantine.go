package host

import (
	"sync"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// quarantine knows the rows that cannot be used. Rows are found ahead of training, by whichever worker reads them first;
// what a checkpoint lists are those that training has come past, so that it does not depend on who was how far
// ahead.
type quarantine struct {
	file  *report.Quarantine
	limit int

	mu      sync.Mutex // guards what follows
	reasons map[string]string
	passed  map[string]string
}

// newQuarantine lists the rows that the index could not take, too.
func newQuarantine(path string, j *job) (*quarantine, error) {
	file, err := report.OpenQuarantine(path)
	if err != nil {
		return nil, err
	}
	q := &quarantine{file: file, limit: j.cfg.MaxQuarantine, reasons: map[string]string{}, passed: map[string]string{}}
	if q.limit < 0 {
		q.limit = max(1, len(j.train.index.Rows)/100)
	}
	for _, s := range []*split{j.train, j.val} {
		if s == nil {
			continue
		}
		for _, r := range s.index.Rejected {
			id := r.ID
			if id == "" {
				id = r.Place
			}
			if err := q.add(report.Quarantined{ID: id, Path: r.Path, Reason: r.Reason, Stage: "index"}); err != nil {
				file.Close()
				return nil, err
			}
		}
	}
	return q, nil
}

// restore takes over what a checkpoint lists: what the run left out, it goes on leaving out.
func (q *quarantine) restore(rows []checkpoint.Quarantined, s *split) {
	reasons := map[string]string{}
	for _, r := range rows {
		reasons[r.ID] = r.Reason
		q.reasons[r.ID], q.passed[r.ID] = r.Reason, r.Reason
	}
	for i, row := range s.index.Rows {
		if reason, ok := reasons[row.ID]; ok {
			s.bad.Add(dataset.BadRow{Row: int32(i), ID: row.ID, Path: row.Path, Reason: reason})
		}
	}
}

// add writes down a row. The error is ErrQuarantine when there are too many.
func (q *quarantine) add(row report.Quarantined) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.reasons[row.ID]; known {
		return nil
	}
	q.reasons[row.ID] = row.Reason
	if _, err := q.file.Add(row); err != nil {
		return err
	}
	if len(q.reasons) > q.limit {
		return hint.Errorf("mend the clips, or the stages, that quarantine.jsonl names, or allow more with --max-quarantine",
			"%w: %d, and %d are allowed; the last is %s: %s", ErrQuarantine, len(q.reasons), q.limit, row.ID, row.Reason)
	}
	return nil
}

// trained notes that training came past the row.
func (q *quarantine) trained(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed[id] = q.reasons[id]
}

// list returns the rows that training came past.
func (q *quarantine) list() []checkpoint.Quarantined {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []checkpoint.Quarantined
	for id, reason := range q.passed {
		out = append(out, checkpoint.Quarantined{ID: id, Reason: reason})
	}
	return out
}

func (q *quarantine) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.reasons)
}

// Close closes the file.
func (q *quarantine) Close() error { return q.file.Close() }
