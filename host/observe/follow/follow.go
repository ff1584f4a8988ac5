package follow

import (
	"errors"
	"io/fs"
	"sync"
	"syscall"

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
	reported                               whole          // report.json
	settings                               []record.Setting
	configured                             whole // config.yaml
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
	r.report, r.reported, r.settings, r.configured = nil, whole{}, nil, whole{}
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
		take  func(line []byte) error
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
		if f.tail.read(most, again, func(line []byte) error {
			*f.count++
			return f.take(line)
		}) {
			more = true
		}
	}
	r.readWhole()
	return more
}

// readWhole reads the files that are replaced as a whole, if they are other ones than those that were read.
func (r *Run) readWhole() {
	if path := r.dir.Join(rundir.ReportFile); r.reported.changed(path) {
		r.report = nil
		if r.reported.there {
			r.report, r.reported.problem = record.ReadReport(path)
		}
		r.mark.Report = r.reported.at
	}
	if path := r.dir.Join(rundir.SettingsFile); r.configured.changed(path) {
		r.settings = nil
		if r.configured.there {
			r.settings, r.configured.problem = record.ReadSettings(path)
		}
		r.mark.Settings = r.configured.at
	}
	if info, err := r.dir.Join(rundir.MetricsFile).Lstat(); err == nil {
		r.mark.LastWrite = info.ModTime().UnixMilli()
	}
}

// whole is a file that is replaced as a whole.
type whole struct {
	there   bool
	at      int64  // when it, or the right to read it, was changed, in ms since 1970
	problem string // why it could not be read, "" if it could
}

// changed looks at the file, and reports whether it is another one than before. Its problem is then forgotten.
func (w *whole) changed(path files.Path) bool {
	now := whole{}
	info, err := path.Lstat()
	switch {
	case err == nil:
		now.there, now.at = true, info.ModTime().UnixMilli()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			now.at = stat.Ctim.Nano() / 1e6
		}
	case !errors.Is(err, fs.ErrNotExist):
		now.problem = record.Why(path, err)
		if now.problem == w.problem {
			return false
		}
	}
	if now.there == w.there && now.at == w.at && now.problem == "" {
		return false
	}
	*w = now
	return true
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

// Problems say what of the files could not be read, each with the name of the file first.
func (r *Run) Problems() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range []*tail{&r.metrics, &r.eval, &r.spoken, &r.unusable, &r.lines} {
		list = append(list, t.problems()...)
	}
	for _, w := range []*whole{&r.reported, &r.configured} {
		if w.problem != "" {
			list = append(list, w.problem)
		}
	}
	return list
}
