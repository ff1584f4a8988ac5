package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/report"
)

// excludedFile names the rows that no bucket holds. They are no part of the quarantine and its limit: nothing is wrong with
// them but that the bundle is too small.
const excludedFile = "excluded.jsonl"

// writeExcluded writes the file, one line per row as in quarantine.jsonl, where there are such rows.
func (j *job) writeExcluded(dir string) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false) // ids stay readable
	for _, s := range j.splits() {
		for _, e := range s.plan.Excluded() {
			row := &s.index.Rows[e.Row]
			if err := enc.Encode(report.Quarantined{ID: row.ID, Path: row.Path, Reason: e.Reason, Stage: "plan", Split: s.name}); err != nil {
				return fmt.Errorf("%s: row %s: %w", excludedFile, row.ID, err)
			}
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return report.ReplaceFile(filepath.Join(dir, excludedFile), lines.Bytes())
}

// excluded counts the rows that no bucket holds.
func (j *job) excluded() int {
	n := 0
	for _, s := range j.splits() {
		n += len(s.plan.Excluded())
	}
	return n
}
