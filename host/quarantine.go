package host

import (
	"cmp"
	"strings"
	"sync"
	"unicode"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// quarantine knows the rows that cannot be used. Rows are found ahead of training, by whichever worker reads them first;
// what a checkpoint lists are those that training has come past, so that it does not depend on who was how far
// ahead.
//
// A list of the run has a limit of its own: a recording that two lists name is broken in both.
type quarantine struct {
	file   *report.Quarantine
	limits map[string]int // by split

	mu      sync.Mutex                   // guards what follows
	reasons map[string]map[string]string // by split and id
	passed  map[string]string            // by id, of the training data
}

// newQuarantine lists the rows that the index could not take, too.
func newQuarantine(path string, j *job) (_ *quarantine, err error) {
	q := &quarantine{limits: map[string]int{}, reasons: map[string]map[string]string{}, passed: map[string]string{}}
	if q.file, err = report.OpenQuarantine(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			q.file.Close()
		}
	}()
	for _, s := range j.splits() {
		q.reasons[s.name], q.limits[s.name] = map[string]string{}, j.cfg.MaxQuarantine
		if q.limits[s.name] < 0 {
			q.limits[s.name] = max(1, len(s.index.Rows)/100)
		}
		for _, r := range s.index.Rejected {
			id := cmp.Or(r.ID, r.Place)
			if err := q.add(report.Quarantined{ID: id, Path: r.Path, Reason: r.Reason, Stage: "index", Split: s.name}); err != nil {
				return nil, err
			}
		}
	}
	return q, nil
}

// restore takes over what a checkpoint lists of the training data: what the run left out, it goes on leaving out.
func (q *quarantine) restore(rows []checkpoint.Quarantined, s *split) {
	reasons := map[string]string{}
	for _, r := range rows {
		r.Reason = shorten(r.Reason, maxCell)
		reasons[r.ID] = r.Reason
		q.reasons[s.name][r.ID], q.passed[r.ID] = r.Reason, r.Reason
	}
	for i, row := range s.index.Rows {
		if reason, ok := reasons[row.ID]; ok {
			s.bad.Add(dataset.BadRow{Row: int32(i), ID: row.ID, Path: row.Path, Reason: reason})
		}
	}
}

// Bounds of what is kept of a row, in bytes. Reasons quote what strangers wrote: lists, recordings and stages. They go to
// the terminal, to quarantine.jsonl and into every checkpoint, which are read again within bounds of their own. The id of a
// row that can be used is never longer (dataset.MaxID), so what is cut still names it.
const (
	maxCell = dataset.MaxID
	maxPath = 4096 // PATH_MAX of Linux
)

// shorten cuts a text to at most limit bytes, between two characters, and replaces what would steer a terminal.
func shorten(text string, limit int) string {
	const ellipsis = "…"
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// add writes down a row, cut to what shorten leaves. The error is exit.ErrQuarantine when there are too many.
func (q *quarantine) add(row report.Quarantined) error {
	row.ID, row.Path, row.Reason = shorten(row.ID, maxCell), shorten(row.Path, maxPath), shorten(row.Reason, maxCell)
	q.mu.Lock()
	defer q.mu.Unlock()
	reasons, limit := q.reasons[row.Split], q.limits[row.Split]
	if _, known := reasons[row.ID]; known {
		return nil
	}
	reasons[row.ID] = row.Reason
	if _, err := q.file.Add(row); err != nil {
		return err
	}
	if len(reasons) > limit {
		return hint.Errorf("mend the clips, or the stages, that quarantine.jsonl names, or allow more with --max-quarantine",
			"%w: %d in the %s data, and %d are allowed; the last is %s: %s", exit.ErrQuarantine, len(reasons), dataName[row.Split], limit, row.ID, row.Reason)
	}
	return nil
}

// rejected adds rows of a batch that a stage cannot use, unread those that cannot be read. The pipeline's workers call them.
func (q *quarantine) rejected(s *split, b *pipeline.Batch, rows []pipeline.Rejected) error {
	for _, r := range rows {
		row := &s.index.Rows[b.Rows[r.Row]]
		if err := q.add(report.Quarantined{ID: row.ID, Path: row.Path, Reason: r.Reason, Stage: r.Phase, Split: s.name}); err != nil {
			return err
		}
	}
	return nil
}

func (q *quarantine) unread(s *split, bad []dataset.BadRow) error {
	for _, b := range bad {
		s.bad.Add(b)
		if err := q.add(report.Quarantined{ID: b.ID, Path: b.Path, Reason: b.Reason, Stage: "decode", Split: s.name}); err != nil {
			return err
		}
	}
	return nil
}

// trained notes that training came past the row.
func (q *quarantine) trained(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed[id] = q.reasons[report.Train][id]
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

// count counts the rows of all lists.
func (q *quarantine) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, reasons := range q.reasons {
		n += len(reasons)
	}
	return n
}

// Close closes the file.
func (q *quarantine) Close() error { return q.file.Close() }
