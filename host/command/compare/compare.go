package compare

import (
	"io"
	"os"
	"path/filepath"
	"slices"

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
	for i, folder := range folders {
		if slices.ContainsFunc(folders[:i], func(before string) bool { return same(before, folder) }) {
			return exit.Refused(hint.Errorf("name each run once", "%s: the run is named twice", folder))
		}
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
		if !same(folder, baseline) {
			list = append(list, folder)
		}
	}
	return list
}

// same says that two paths name one folder, which an absolute path or a link may do, too.
func same(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err != nil || otherErr != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(one, other)
}
