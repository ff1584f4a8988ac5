package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// maxReport bounds report.json, in bytes. One has some 10 KB.
const maxReport = 4 << 20

// Run is what a run folder tells.
type Run struct {
	// Folder is the path as it was named.
	Folder string
	// Report is nil if report.json is not there or cannot be read.
	Report      *report.Report
	Steps       *Steps
	Evaluations Evaluations
	// Best is the best evaluation, by the loss or by what its By names; nil without one.
	Best       *report.Best
	Spoken     Spoken
	Probes     Probes
	Quarantine Quarantine
	Settings   []Setting
	// Written is when the newest of metrics.jsonl and report.json was written.
	Written time.Time
	// Problems say what is missing or could not be read.
	Problems []string
}

// Open reads a run folder. The error says that there is no run.
func Open(folder string) (*Run, error) {
	run := files.In(folder)
	r := &Run{Folder: folder}
	say := func(problem string) {
		if problem != "" {
			r.Problems = append(r.Problems, problem)
		}
	}
	if err := r.there(run); err != nil {
		return nil, err
	}
	var problem string
	r.Report, problem = ReadReport(run.Join(rundir.ReportFile))
	say(problem)
	r.Settings, problem = ReadSettings(run.Join(rundir.SettingsFile))
	say(problem)
	var began []int64
	if r.Report != nil {
		began = append(began, r.Report.ResumedAt)
	}
	r.Steps, problem = readSteps(run.Join(rundir.MetricsFile), began)
	say(problem)
	choice, _ := choose(run, r.fresh(), r.Settings) // readSpoken says what is wrong with the lines
	r.Evaluations, problem = readEvaluations(run.Join(rundir.EvalFile), &choice)
	say(problem)
	best := int64(-1)
	if r.Best = choice.of(r.Evaluations.Best); r.Best != nil {
		best = r.Best.Step
	}
	r.Spoken, problem = readSpoken(run, best)
	say(problem)
	if n := r.Spoken.Refused; n > 0 {
		say(fmt.Sprintf("%s: %s of no sample, which were not opened", rundir.SpokenFile, units.Count(n, "path")))
	}
	r.Probes, problem = readProbes(run.Join(rundir.ProbesFile))
	say(problem)
	r.Quarantine, problem = readQuarantine(run.Join(rundir.QuarantineFile))
	say(problem)
	if r.Report != nil && r.Stale() {
		say(fmt.Sprintf("%s is of step %d, and the run has step %d: its figures are those of then", rundir.ReportFile,
			r.Report.Steps, r.Steps.LastStep))
	}
	return r, nil
}

// there returns an error unless the folder has a file that only a run writes.
func (r *Run) there(run files.Path) error {
	found := false
	for _, name := range []string{rundir.MetricsFile, rundir.ReportFile} {
		info, err := run.Join(name).Lstat()
		switch {
		case err == nil:
			found = true
			if info.ModTime().After(r.Written) {
				r.Written = info.ModTime()
			}
		case errors.Is(err, files.ErrLink): // it is not read, and says why
			found = true
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !found {
		advice := "name the folder of a run, which contains metrics.jsonl"
		if whole, at, ok := strings.Cut(filepath.Base(run.String()), "@"); ok && rundir.IsCheckpoint(at) {
			advice = "name the whole run, without @" + at + ": " +
				hint.Path(filepath.Join(filepath.Dir(run.String()), whole))
		}
		return hint.Errorf(advice, "%s: there is no run in this folder", filepath.Clean(run.String()))
	}
	return nil
}

// ReadReport reads report.json. Values of a wrong type are left out, and the others are there. It is nil, with the
// problem, if it cannot be read.
func ReadReport(path files.Path) (*report.Report, string) {
	data, err := path.Read(maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, rundir.ReportFile + " is not there: " + stillOrKilled
	}
	if err != nil {
		return nil, Why(path, err)
	}
	r := &report.Report{Loss: report.Losses{First: nan, Last: nan, Best: nan}}
	err = json.Unmarshal(data, r)
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
		return r, fmt.Sprintf("%s: %v", rundir.ReportFile, err)
	}
	if err != nil {
		return nil, fmt.Sprintf("%s: %v", rundir.ReportFile, err)
	}
	return r, ""
}

var nan = report.Float(math.NaN())

// Stale reports whether the report is that of an earlier step, as in a run that was resumed and has not ended yet.
func (r *Run) Stale() bool { return r.Report != nil && r.Report.Steps < r.Steps.LastStep }

// fresh is the report, nil if it is that of an earlier step.
func (r *Run) fresh() *report.Report {
	if r.Stale() {
		return nil
	}
	return r.Report
}
