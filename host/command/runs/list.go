package runs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Listing is the output of `runs list --json`.
type Listing struct {
	Version int   `json:"version"`
	Runs    []Row `json:"runs"`
	// Unreadable are folders that have files of a run which cannot be read.
	Unreadable []Unreadable `json:"unreadable"`
}

// Row is a run.
type Row struct {
	Folder string `json:"folder"`
	// Outcome is the state that the files of the run tell, one of record.States.
	Outcome        string       `json:"outcome"`
	Steps          int64        `json:"steps"`
	LossFirst      report.Float `json:"loss_first"`
	LossLast       report.Float `json:"loss_last"`
	Best           *report.Best `json:"best"` // null without an evaluation
	StepsPerSecond float64      `json:"steps_per_second"`
	WallS          float64      `json:"wall_s,omitempty"` // absent for a run without a report
	Written        time.Time    `json:"written"`
	Bytes          int64        `json:"bytes"`
	// Partly says that not all files could be counted.
	Partly bool `json:"bytes_incomplete,omitempty"`
	// Problems say which lines of its files were left out.
	Problems []string `json:"problems,omitempty"`
}

// Unreadable is a folder that cannot be read.
type Unreadable struct {
	Folder string `json:"folder"`
	Reason string `json:"reason"`
}

// List prints the runs in folders, the oldest first. width is that of the terminal, 0 for none.
func List(out io.Writer, dirs []string, asJSON bool, width int) error {
	list, err := listOf(dirs)
	if err != nil {
		return exit.Refused(err)
	}
	if asJSON {
		return report.JSON(out, list)
	}
	if len(list.Runs)+len(list.Unreadable) == 0 {
		_, err := visible.Fprintf(out, "no run in %s\n", dirs[0])
		return err
	}
	_, err = io.WriteString(out, table(list, width))
	return err
}

func listOf(dirs []string) (*Listing, error) {
	list := &Listing{Version: 1, Runs: []Row{}, Unreadable: []Unreadable{}}
	folders, err := Folders(dirs)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		list.add(folder)
	}
	slices.SortStableFunc(list.Runs, func(a, b Row) int { return a.Written.Compare(b.Written) })
	return list, nil
}

// Folders returns each of the folders that is that of a run, and for each other one the runs in it. A run is there
// once, however often and by whatever links it is named.
func Folders(dirs []string) (list []string, err error) {
	seen := map[string]bool{}
	add := func(folder string) {
		place := folder
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			if place, err = filepath.Abs(real); err != nil {
				place = folder
			}
		}
		if !seen[place] {
			list = append(list, folder)
		}
		seen[place] = true
	}
	for _, dir := range dirs {
		if dir != "" && isRun(dir) {
			add(filepath.Clean(dir))
			continue
		}
		entries, err := files.In(dir).ReadDir()
		if err != nil || dir == "" {
			return nil, refused(dir, err)
		}
		for _, e := range entries {
			if folder := filepath.Join(dir, e.Name()); e.IsDir() && isRun(folder) {
				add(folder)
			}
		}
	}
	return list, nil
}

// refused says why a folder that was named has no runs to list.
func refused(dir string, err error) error {
	const advice = "name the folder of a run, or one that has run folders"
	switch {
	case dir == "":
		return hint.Errorf(advice+": the current one is .", `"" is no folder`)
	case errors.Is(err, fs.ErrNotExist):
		return hint.Errorf("name the folder that has the run folders", "%s: there is no such folder", dir)
	case errors.Is(err, syscall.ENOTDIR):
		if in := filepath.Dir(dir); isRun(in) {
			return hint.Errorf("name the run: "+hint.Path(in), "%s: that is a file of a run, not its folder", dir)
		}
		return hint.Errorf(advice, "%s: that is a file, not a folder", dir)
	case errors.Is(err, fs.ErrPermission):
		return hint.Errorf("have its owner let you read it", "%s: this user may not read the folder", dir)
	}
	return err
}

// isRun reports whether a folder has what only a run writes, readable or not.
func isRun(folder string) bool {
	for _, name := range []string{rundir.MetricsFile, rundir.ReportFile} {
		if _, err := files.In(folder, name).Lstat(); err == nil || errors.Is(err, files.ErrLink) {
			return true
		}
	}
	return false
}

func (l *Listing) add(folder string) {
	g, err := record.Look(folder)
	if err != nil {
		l.Unreadable = append(l.Unreadable, Unreadable{folder, err.Error()})
		return
	}
	row := Row{
		Folder: folder, Outcome: g.Status, Steps: g.Steps, LossFirst: g.First, LossLast: g.Last,
		StepsPerSecond: g.StepsPerSec, WallS: g.WallS, Written: g.Written.UTC().Truncate(time.Second), Bytes: g.Bytes,
		Partly: !g.AllBytes, Best: g.Best, Problems: g.Problems,
	}
	l.Runs = append(l.Runs, row)
}
