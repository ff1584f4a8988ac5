// Package report implements the command `report`: it writes the page of a run anew, also of one that is still going or
// was killed. It changes nothing else in the run's folder.
package report

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Run writes the page of a run to a file; "" means report.html in its folder.
func Run(out io.Writer, folder, file string) error {
	run, err := record.Open(folder)
	if err != nil {
		return exit.Refused(err)
	}
	if file == "" {
		file = filepath.Join(folder, rundir.PageFile)
	}
	text, err := page.Of(run, page.PathTo(folder, file), page.MostMedia, time.Now())
	if err != nil {
		return err
	}
	if err := page.Save(file, text); err != nil {
		return hint.Errorf("name a file that can be written with --out", "page of %s: %w", folder, err)
	}
	for _, problem := range run.Problems {
		visible.Fprintf(out, "not in the page: %s\n", problem)
	}
	_, err = visible.Fprintf(out, "%s: %s, step %d, %s\n", file, run.Status(), run.Steps.LastStep, size(len(text)))
	return err
}

func size(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", (bytes+1<<10-1)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
