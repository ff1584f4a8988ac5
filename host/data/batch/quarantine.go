package batch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// ErrQuarantine is the error of a run with more unusable rows than it allows.
var ErrQuarantine = exit.New(exit.StatusData, "too many unusable rows")

// Quarantine keeps the rows that cannot be used. Any worker may find such a row, before training reaches it. A
// checkpoint lists the rows that training has processed, so it does not depend on how far ahead workers were.
//
// Each list of the run has its own limit: a recording in two lists is broken in both.
type Quarantine struct {
	// Found, which may be nil, is called for each row that is found after OpenQuarantine. It must not call the
	// Quarantine.
	Found func(row report.Quarantined)

	file   *report.Quarantine
	limits map[string]int // by split

	count atomic.Int64 // of the rows of all lists

	mu      sync.Mutex                   // guards what follows
	reasons map[string]map[string]string // by split and id
	passed  map[string]string            // by id, of the training data
	warned  map[string]bool              // by split: a row was found while the run was going on
	warn    func(text string, args ...any)
}

// OpenQuarantine also lists the rows that the index could not use, all of them before it fails because they are too
// many. limit is the largest number of rows of each split; below 0 it is 1 %. Without a path, no file is written. warn,
// which may be nil, gets a line for the first row of each split that is found later.
func OpenQuarantine(
	path string, data Data, limit int, wait *files.Patience, warn func(text string, args ...any),
) (_ *Quarantine, err error) {
	q := &Quarantine{
		limits: map[string]int{}, reasons: map[string]map[string]string{}, passed: map[string]string{},
		warned: map[string]bool{}, warn: warn,
	}
	if path != "" {
		if q.file, err = report.OpenQuarantine(path, wait); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			q.Close()
		}
	}()
	for _, s := range data.Splits() {
		q.reasons[s.Name], q.limits[s.Name] = map[string]string{}, Allowed(limit, len(s.Index.Rows))
		for _, r := range s.Index.Rejected {
			id := cmp.Or(r.ID, s.Index.Place(r.Line))
			err := q.add(report.Quarantined{ID: id, Path: r.Path, Reason: r.Reason, Stage: "index", Split: s.Name})
			if err != nil && !errors.Is(err, ErrQuarantine) {
				return nil, err
			}
		}
	}
	for _, s := range data.Splits() {
		if n := len(s.Index.Rejected); n > 0 {
			r := s.Index.Rejected[n-1]
			if err := q.tooMany(s.Name, cmp.Or(r.ID, s.Index.Place(r.Line)), r.Reason); err != nil {
				return nil, err
			}
		}
	}
	return q, nil
}

// Allowed is the number of unusable rows that a list of so many rows may have with --max-quarantine.
func Allowed(maxQuarantine, rows int) int {
	if maxQuarantine < 0 {
		return max(1, rows/100)
	}
	return maxQuarantine
}

// tooMany returns ErrQuarantine if more rows of a split are listed than the limit. The row is the last.
func (q *Quarantine) tooMany(split, id, reason string) error {
	n, limit := len(q.reasons[split]), q.limits[split]
	if n <= limit {
		return nil
	}
	where := "that " + rundir.QuarantineFile + " names"
	if q.file == nil {
		where = "that cannot be used"
	}
	return hint.Errorf("correct or remove the clips "+where+
		", or correct the stage that refuses them, or allow more with --max-quarantine",
		"%w: %d in the %s data, but --max-quarantine allows %d; the last is %s: %s", ErrQuarantine, n, title[split],
		limit, visible.Short(id, maxCell), visible.Clauses(reason, dataset.MaxReason))
}

// Restore adds the rows of the training data that a checkpoint lists: rows that were left out stay left out.
// reasons has them by the id of the row.
func (q *Quarantine) Restore(reasons map[string]string, s *Split) {
	for id, reason := range reasons {
		reason = visible.Clauses(reason, dataset.MaxReason)
		if _, known := q.reasons[s.Name][id]; !known {
			q.count.Add(1)
		}
		q.reasons[s.Name][id], q.passed[id] = reason, reason
	}
	for i, row := range s.Index.Rows {
		if _, ok := reasons[row.ID]; ok {
			reason := q.passed[row.ID]
			s.bad.Add(dataset.BadRow{Row: int32(i), ID: row.ID, Path: row.Path, Reason: reason})
		}
	}
}

// Limits of the text that is kept of a row, in bytes. Reasons quote text from untrusted sources: lists, recordings and
// stages. They are printed on the terminal, and written to quarantine.jsonl and every checkpoint, whose readers have
// limits of their own. The id of a usable row is never longer (dataset.MaxID), so a shortened id still identifies it.
const (
	maxCell = dataset.MaxID
	maxPath = 4096 // PATH_MAX of Linux
)

// Add records a row that another process has found. The error is ErrQuarantine if there are too many rows.
func (q *Quarantine) Add(row report.Quarantined) error {
	if q.reasons[row.Split] == nil {
		return nil // of a list that this process does not have
	}
	return q.add(row)
}

// add records a row, with shortened texts. The error is ErrQuarantine if there are too many rows.
func (q *Quarantine) add(row report.Quarantined) error {
	row.ID, row.Path, row.Reason = visible.Short(row.ID, maxCell), visible.Short(row.Path, maxPath),
		visible.Clauses(row.Reason, dataset.MaxReason)
	fresh, err := q.record(row)
	if fresh && row.Stage != "index" && q.Found != nil {
		q.Found(row)
	}
	return err
}

// record is add for a row with texts of the right lengths. fresh reports whether the row was not known.
func (q *Quarantine) record(row report.Quarantined) (fresh bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	reasons := q.reasons[row.Split]
	if _, known := reasons[row.ID]; known {
		return false, nil
	}
	reasons[row.ID] = row.Reason
	q.count.Add(1)
	if q.file != nil {
		if _, err := q.file.Add(row); err != nil {
			return true, err
		}
	}
	if err := q.tooMany(row.Split, row.ID, row.Reason); err != nil {
		return true, err
	}
	if row.Stage != "index" && q.warn != nil && !q.warned[row.Split] {
		q.warned[row.Split] = true
		q.warn(fmt.Sprintf(
			"clip %s of the %s data cannot be used and is left out: %s (%s names it, and those that follow)", row.ID,
			title[row.Split], row.Reason, rundir.QuarantineFile))
	}
	return true, nil
}

// rejected adds rows of a batch that a stage cannot use, unread adds rows that cannot be read. The pipeline's workers
// call them.
func (q *Quarantine) rejected(s *Split, b *pipeline.Batch, rows []pipeline.Rejected) error {
	for _, r := range rows {
		row := &s.Index.Rows[b.Rows[r.Row]]
		if err := q.add(report.Quarantined{
			ID: row.ID, Path: row.Path, Reason: r.Reason, Stage: r.Phase, Split: s.Name,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (q *Quarantine) unread(s *Split, bad []dataset.BadRow) error {
	for _, b := range bad {
		s.bad.Add(b)
		if err := q.add(report.Quarantined{
			ID: b.ID, Path: b.Path, Reason: b.Reason, Stage: "decode", Split: s.Name,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Trained records that training has processed the row.
func (q *Quarantine) Trained(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed[id] = q.reasons[report.Train][id]
}

// List returns the reasons of the unusable rows that training has processed, by id.
func (q *Quarantine) List() map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.passed)
}

// Unusable returns the reasons of the unusable rows of a list, by id.
func (q *Quarantine) Unusable(split string) map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.reasons[split])
}

// Count counts the rows of all lists. It takes no lock: a worker may hold it while a disk is full.
func (q *Quarantine) Count() int { return int(q.count.Load()) }

// Close closes the file.
func (q *Quarantine) Close() error {
	if q.file == nil {
		return nil
	}
	return q.file.Close()
}
