package batch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

func TestUnusable(t *testing.T) {
	ix := &dataset.Index{Dir: "/my data", List: "metadata.csv"}
	for i := range 30 {
		ix.Rows = append(ix.Rows, dataset.Row{ID: fmt.Sprint("r", i), Line: i + 1})
	}
	s := &Split{Name: report.Train, Index: ix}
	lines := s.Lines(map[string]string{"r9": "silent", "r2": "torn\n", "metadata.csv:99": "no clip"})
	if got, want := s.Unusable(lines), []string{
		`metadata.csv:3: torn\n`, "metadata.csv:10: silent",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var all []dataset.Rejected
	for i := range 1200 {
		all = append(all, dataset.Rejected{Line: i + 1, Reason: "gone"})
	}
	got := s.Unusable(all)
	if len(got) != 11 || got[9] != "metadata.csv:10: gone" ||
		got[10] != "and 1,190 more: xtts-host data check '/my data/metadata.csv' lists them" {
		t.Errorf("%q", got)
	}
}
