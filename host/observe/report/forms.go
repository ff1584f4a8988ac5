package report

import (
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// OtherForms names the graphs whose form has changed since the process before, by the report in the run folder: fused,
// or as exported. Both round in other places. There is none if the folder has no report. now lists the graphs, those of
// training first.
func OtherForms(dir string, now []Graph) (lines []string) {
	before, err := Read(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		return nil
	}
	for i, g := range now[:min(len(now), len(before.Graphs))] {
		was := before.Graphs[i]
		// An evaluation graph that is not fused has no reason, as on the CPU: there, no training graph is fused.
		unfused := was.Unfused != "" || g.Use == Evaluating && was.Fused == nil && before.Graphs[0].Fused != nil
		switch {
		case was.Fused != nil && g.Fused == nil:
			lines = append(lines, fmt.Sprintf("the run had the fused graph%s so far, and continues with the graph as "+
				"exported: from here on its losses differ by rounding from those of a run that is fused all the time "+
				"(--fuse)", g.Of()))
		case unfused && g.Fused != nil:
			lines = append(lines, fmt.Sprintf("the run had the graph%s as exported so far, and continues with the "+
				"fused graph: from here on its losses differ by rounding from those of a run that is not fused "+
				"(--fuse off)", g.Of()))
		}
	}
	return lines
}
