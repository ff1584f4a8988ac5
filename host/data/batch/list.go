package batch

import (
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// ListOf says how the list of an index is read.
func ListOf(ix *dataset.Index) report.List {
	l := report.List{
		Path: filepath.Join(ix.Dir, ix.List), Layout: ix.Layout, Columns: ix.LayoutText,
		Remarks: append([]string{}, ix.Remarks...), Examples: []report.Example{},
	}
	for _, r := range ix.Examples() {
		l.Examples = append(l.Examples, report.Example{
			Place: ix.Place(r.Line), ID: r.ID, Text: r.Text, Speaker: ix.Speakers[r.SpeakerID],
			Language: ix.Languages[r.LanguageID],
		})
	}
	return l
}
