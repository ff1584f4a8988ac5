package follow

import (
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Run is what was read of a run folder. It is safe for concurrent use.
type Run struct {
	folder string
	dir    files.Path
	brief  bool // only the ends of metrics.jsonl, and evaluations, are read
	// stepBins and evaluationBins bound the bins of a curve.
	stepBins, evaluationBins int

	mu                                     sync.Mutex // guards what follows
	metrics, eval, spoken, unusable, lines tail
	steps                                  steps
	evaluations                            evaluations
	speech                                 speech
	clips                                  clips
	log                                    log
	mark                                   Mark
	report                                 *report.Report // nil without one that can be read
	reported                               time.Time      // when it was written
	settings                               []record.Setting
	configured                             time.Time
}

// Mark counts what was read. A part whose number has not changed has not changed, and all have if Again has.
type Mark struct {
	Again                       int64 // how often a file was read from its beginning again
	Steps, Evaluations, Spoken  int64 // lines
	Clips, Log                  int64
	Report, Settings, LastWrite int64 // ms since 1970
}

// New returns a Run of which nothing is read. A folder that is not there is one without files.
func New(folder string) *Run {
	dir := files.In(folder)
	r := &Run{folder: folder, dir: dir, stepBins: maxBins, evaluationBins: maxEvaluationBins}
	r.clearSteps()
	r.clearEvaluations()
	for name, t := range map[string]*tail{
		rundir.MetricsFile: &r.metrics, rundir.EvalFile: &r.eval, rundir.SpokenFile: &r.spoken,
		rundir.QuarantineFile: &r.unusable, rundir.LogFile: &r.lines,
	} {
		t.path = dir.Join(name)
	}
	return r
}

// Brief returns a Run for a list of runs, which needs little time and memory whatever the folder has: of the steps it
// reads the last 256 KiB, and of the other lines only evaluations. Now, Best, Status and Mark.LastWrite are those of
// New, but for what Now says of the first steps. Curves have one or two pieces.
func Brief(folder string) *Run {
	r := New(folder)
	r.brief, r.metrics.end, r.stepBins, r.evaluationBins = true, maxLine, 2, 2
	r.clearSteps()
	r.clearEvaluations()
	return r
}

// Forget gives back the memory of what was read. The next Read begins again.
func (r *Run) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range []*tail{&r.metrics, &r.eval, &r.spoken, &r.unusable, &r.lines} {
		*t = tail{path: t.path, end: t.end}
	}
	r.clearSteps()
	r.clearEvaluations()
	r.speech, r.clips, r.log = speech{}, clips{}, log{}
	r.report, r.reported, r.settings, r.configured = nil, time.Time{}, nil, time.Time{}
	r.mark = Mark{Again: r.mark.Again + 1}
}

func (r *Run) clearSteps()       { r.steps = steps{curves: curves{most: r.stepBins}} }
func (r *Run) clearEvaluations() { r.evaluations = evaluations{curves: curves{most: r.evaluationBins}} }

// Folder is the path as it was named.
func (r *Run) Folder() string { return r.folder }

// Read reads what was appended to the files, at most so many bytes of each, and reports whether there is more.
func (r *Run) Read(most int64) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.mark
	kinds := []struct {
		tail  *tail
		again func()
		take  func(line []byte)
		count *int64
	}{
		{&r.metrics, r.clearSteps, r.steps.take, &m.Steps},
		{&r.eval, r.clearEvaluations, r.evaluations.take, &m.Evaluations},
		{&r.spoken, func() { r.speech = speech{} }, r.speech.take, &m.Spoken},
		{&r.unusable, func() { r.clips = clips{} }, r.clips.take, &m.Clips},
		{&r.lines, func() { r.log = log{} }, r.log.take, &m.Log},
	}
	if r.brief {
		kinds = kinds[:2]
	}
	for _, f := range kinds {
		again := func() { f.again(); *f.count = 0; m.Again++ }
		if f.tail.read(most, again, func(line []byte) { f.take(line); *f.count++ }) {
			more = true
		}
	}
	r.readWhole()
	return more
}

// readWhole reads the files that are replaced as a whole, if they are other ones than those that were read.
func (r *Run) readWhole() {
	if at := written(r.dir.Join(rundir.ReportFile)); !at.Equal(r.reported) {
		r.reported, r.report = at, nil
		if !at.IsZero() {
			r.report, _ = record.ReadReport(r.dir.Join(rundir.ReportFile))
		}
		r.mark.Report = at.UnixMilli()
	}
	if at := written(r.dir.Join(rundir.SettingsFile)); !at.Equal(r.configured) {
		r.configured, r.settings = at, nil
		if !at.IsZero() {
			r.settings, _ = record.ReadSettings(r.dir.Join(rundir.SettingsFile))
		}
		r.mark.Settings = at.UnixMilli()
	}
	if at := written(r.dir.Join(rundir.MetricsFile)); !at.IsZero() {
		r.mark.LastWrite = at.UnixMilli()
	}
}

// written is when a file was written, the zero time if it is not there or no regular file.
func written(path files.Path) time.Time {
	info, err := path.Lstat()
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}
	}
	return info.ModTime()
}

// Mark returns what was read.
func (r *Run) Mark() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark
}

// Report returns report.json, nil without one that can be read. The caller must not change it.
func (r *Run) Report() *report.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// Settings returns those of config.yaml. The caller must not change them.
func (r *Run) Settings() []record.Setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// Status is the state of the run in one word, one of those of package record.
func (r *Run) Status() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (&record.Run{Report: r.report, Steps: &record.Steps{LastStep: r.steps.last}}).Status()
}

// Problems say why files could not be read.
func (r *Run) Problems() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range []*tail{&r.metrics, &r.eval, &r.spoken, &r.unusable, &r.lines} {
		if t.problem != "" {
			list = append(list, t.path.Base()+": "+t.problem)
		}
	}
	return list
}
