package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/report"
)

// ExcludedFile names the rows that no bucket holds. They are no part of the quarantine and its limit: nothing is wrong with
// them but that the bundle is too small.
const ExcludedFile = "excluded.jsonl"

// WriteExcluded writes the file, one line per row as in quarantine.jsonl, where there are such rows.
func (d Data) WriteExcluded(dir string) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false) // ids stay readable
	for _, s := range d.Splits() {
		for _, e := range s.Plan.Excluded() {
			row := &s.Index.Rows[e.Row]
			if err := enc.Encode(report.Quarantined{ID: row.ID, Path: row.Path, Reason: e.Reason, Stage: "plan", Split: s.Name}); err != nil {
				return fmt.Errorf("%s: row %s: %w", ExcludedFile, row.ID, err)
			}
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return report.ReplaceFile(filepath.Join(dir, ExcludedFile), lines.Bytes())
}

// Excluded counts the rows that no bucket holds.
func (d Data) Excluded() int {
	n := 0
	for _, s := range d.Splits() {
		n += len(s.Plan.Excluded())
	}
	return n
}
