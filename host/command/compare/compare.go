package compare

import (
	"io"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Options are those of the command.
type Options struct {
	// Runs are folders. Baseline is another one, or one of them; "" means the first.
	Runs     []string
	Baseline string
	JSON     bool
	// File gets the comparison as a page; "" means none.
	File string
	// Width is that of the terminal, 0 for none.
	Width int
}

// Run compares runs.
func Run(out io.Writer, o Options) error {
	folders := order(o.Runs, o.Baseline)
	if len(folders) < 2 {
		return exit.Refused(hint.Errorf("for example: "+hint.Command("compare runs/first runs/second"),
			"a comparison needs two runs"))
	}
	var all []*record.Run
	named := map[string]bool{}
	for _, folder := range folders {
		if named[filepath.Clean(folder)] {
			return exit.Refused(hint.Errorf("name each run once", "%s: the run is named twice", folder))
		}
		named[filepath.Clean(folder)] = true
		run, err := record.Open(folder)
		if err != nil {
			return exit.Refused(err)
		}
		all = append(all, run)
	}
	r := of(all)
	if o.File != "" {
		text, err := r.page(all, o.File)
		if err != nil {
			return err
		}
		if err := page.Save(o.File, text); err != nil {
			return hint.Errorf("name a file that can be written", "--out: %w", err)
		}
	}
	if o.JSON {
		return report.JSON(out, r)
	}
	width := 80
	if o.Width > 0 {
		width = o.Width
	}
	if _, err := io.WriteString(out, r.Text(width)); err != nil || o.File == "" {
		return err
	}
	_, err := visible.Fprintf(out, "\npage: %s\n", o.File)
	return err
}

// order puts the baseline first.
func order(runs []string, baseline string) []string {
	if baseline == "" {
		return runs
	}
	list := []string{baseline}
	for _, folder := range runs {
		if filepath.Clean(folder) != filepath.Clean(baseline) {
			list = append(list, folder)
		}
	}
	return list
}
