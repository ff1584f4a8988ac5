package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// WriteExcluded writes excluded.jsonl: one line, as in quarantine.jsonl, for each row that fits in no bucket. They are
// not counted as quarantined, because their clips are intact.
func (d Data) WriteExcluded(dir string) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false) // ids stay readable
	for _, s := range d.Splits() {
		for _, e := range s.Plan.Excluded() {
			row := &s.Index.Rows[e.Row]
			if err := enc.Encode(report.Quarantined{
				ID: row.ID, Path: row.Path, Reason: s.Index.TooLong(e), Stage: "plan", Split: s.Name,
			}); err != nil {
				return fmt.Errorf("%s: row %s: %w", rundir.ExcludedFile, row.ID, err)
			}
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return disk.Replace(filepath.Join(dir, rundir.ExcludedFile), lines.Bytes())
}

// Excluded counts the rows that fit in no bucket.
func (d Data) Excluded() int {
	n := 0
	for _, s := range d.Splits() {
		n += len(s.Plan.Excluded())
	}
	return n
}
