package dataset

import (
	"cmp"
	"slices"
	"sync"
)

// BadRow is a row whose clip is unusable.
type BadRow struct {
	Row    int32  `json:"row"` // index into Index.Rows
	ID     string `json:"id"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// Position is the row's place in the batch, or -1 if it was only read as the reference of another row, which then
	// uses a part of its own clip.
	Position int `json:"-"`
}

// Quarantine is a set of rows that are left empty. The zero value is an empty set. It is safe for concurrent use.
type Quarantine struct {
	mu   sync.RWMutex
	rows map[int32]BadRow
}

// Add adds a row to the set and reports whether it is new.
func (q *Quarantine) Add(b BadRow) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.rows[b.Row]; ok {
		return false
	}
	if q.rows == nil {
		q.rows = map[int32]BadRow{}
	}
	q.rows[b.Row] = b
	return true
}

// Has reports whether the row is in the set.
func (q *Quarantine) Has(row int32) bool {
	_, ok := q.get(row)
	return ok
}

// get returns the row from the set, if it contains it.
func (q *Quarantine) get(row int32) (BadRow, bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	b, ok := q.rows[row]
	return b, ok
}

// Rows returns the set in the order of the index.
func (q *Quarantine) Rows() []BadRow {
	q.mu.RLock()
	defer q.mu.RUnlock()
	rows := make([]BadRow, 0, len(q.rows))
	for _, b := range q.rows {
		rows = append(rows, b)
	}
	slices.SortFunc(rows, func(a, b BadRow) int { return cmp.Compare(a.Row, b.Row) })
	return rows
}
