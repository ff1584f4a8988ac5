package host

import (
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/report"
)

// otherForm names a change of the training graph's form since the process before, by the report in the run folder: fused, or as exported.
// Both round in other places. It is empty without a change, and if the folder has no report.
func otherForm(dir string, now *report.Fused) string {
	before, err := report.Read(filepath.Join(dir, report.ReportFile))
	if err != nil || len(before.Graphs) == 0 {
		return ""
	}
	g := before.Graphs[0]
	switch {
	case g.Fused != nil && now == nil:
		return "the run was trained with the fused graph so far, and continues with the graph as exported: from here on its losses differ by rounding from those of a run that is fused all the time (--fuse)"
	case g.Unfused != "" && now != nil:
		return "the run was trained with the graph as exported so far, and continues with the fused graph: from here on its losses differ by rounding from those of a run that is not fused (--fuse off)"
	}
	return ""
}
