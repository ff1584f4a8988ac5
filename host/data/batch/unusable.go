package batch

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// mostUnusable limits the lines of a list that are named because they cannot be used.
const mostUnusable = 10

// Unusable names lines of the split's list that cannot be used, with the reasons.
func (s *Split) Unusable(lines []dataset.Rejected) []string {
	var text []string
	for _, r := range lines[:min(mostUnusable, len(lines))] {
		text = append(text, fmt.Sprintf("%s: %s", s.Index.Place(r.Line), visible.Clauses(r.Reason, dataset.MaxReason)))
	}
	if more := len(lines) - mostUnusable; more > 0 {
		text = append(text, fmt.Sprintf("and %s more: %s lists them", units.Thousands(more),
			hint.Command("data check "+hint.Word(filepath.Join(s.Index.Dir, s.Index.List)))))
	}
	if remedy := s.Index.Remedy(lines); remedy != "" {
		text = append(text, remedy)
	}
	return text
}

// Lines returns the lines of the split's usable clips that are in the quarantine all the same, in the order of the
// list. reasons has the reason of each by its id.
func (s *Split) Lines(reasons map[string]string) (lines []dataset.Rejected) {
	for _, row := range s.Index.Rows {
		if reason, ok := reasons[row.ID]; ok {
			lines = append(lines, dataset.Rejected{Line: row.Line, ID: row.ID, Path: row.Path, Reason: reason})
		}
	}
	slices.SortStableFunc(lines, func(a, b dataset.Rejected) int { return a.Line - b.Line })
	return lines
}
