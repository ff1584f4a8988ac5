package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Glance is a run in a line.
type Glance struct {
	Status      string
	Steps       int64
	First, Last report.Float // losses
	Best        *report.Best // nil without one
	StepsPerSec float64
	WallS       float64 // of the last process; 0 if it is not known
	Written     time.Time
	Bytes       int64
	AllBytes    bool // otherwise Bytes leaves some out
	// Problems say what of the files that were read was left out.
	Problems []string
}

// Look reads a run in short: report.json, if it is that of the last step, and metrics.jsonl otherwise.
func Look(folder string) (*Glance, error) {
	run := files.In(folder)
	r := &Run{Folder: folder}
	if err := r.there(run); err != nil {
		return nil, err
	}
	g := &Glance{Status: Unfinished, Written: r.Written, First: nan, Last: nan}
	g.Bytes, g.AllBytes = Size(folder)
	rep, problem := ReadReport(run.Join(rundir.ReportFile))
	last, err := lastStep(run.Join(rundir.MetricsFile))
	if err != nil && rep == nil {
		return nil, fmt.Errorf("%s; %s", Why(run.Join(rundir.MetricsFile), err), problem)
	}
	r.Report, r.Steps = rep, &Steps{LastStep: last}
	if g.Status = r.Status(); g.Status != Unfinished {
		g.of(rep)
		g.best(run, rep)
		return g, nil
	}
	steps, problem := readSteps(run.Join(rundir.MetricsFile), nil)
	if steps.Count == 0 && problem != "" {
		return nil, fmt.Errorf("%s", problem)
	}
	g.say(problem)
	g.Steps, g.First, g.Last = steps.LastStep, report.Float(steps.First), report.Float(steps.Last)
	g.StepsPerSec, _ = steps.Speed()
	g.best(run, nil)
	return g, nil
}

func (g *Glance) say(problem string) {
	if problem != "" {
		g.Problems = append(g.Problems, problem)
	}
}

// of takes the figures of a report.
func (g *Glance) of(r *report.Report) {
	g.Steps, g.First, g.Last, g.StepsPerSec, g.WallS = r.Steps, r.Loss.First, r.Loss.Last, r.StepsPerSecond, r.WallS
}

// best finds the best evaluation, in a report or, without one of the last step, in the lines.
func (g *Glance) best(run files.Path, rep *report.Report) {
	settings, _ := ReadSettings(run.Join(rundir.SettingsFile))
	choice, spoken := choose(run, rep, settings)
	if g.Best = choice.known; g.Best == nil {
		e, problem := readEvaluations(run.Join(rundir.EvalFile), &choice)
		g.Best = choice.of(e.Best)
		g.say(problem)
		g.say(spoken)
	}
}

// lastStep reads the step of the last complete line of metrics.jsonl; 0 if it has none. It reads the end of the file,
// and all of it only if no line of the end has a step.
func lastStep(path files.Path) (int64, error) {
	f, err := path.Open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	tail := make([]byte, min(f.Size(), 2*MaxLine))
	if err := files.ReadAt(f, tail, f.Size()-int64(len(tail))); err != nil {
		return 0, err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	for len(tail) > 0 {
		begin := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		var v stepLine
		if json.Unmarshal(tail[begin:], &v) == nil && v.Step != nil {
			return *v.Step, nil
		}
		tail = tail[:begin]
	}
	if f.Size() <= 2*MaxLine {
		return 0, nil
	}
	steps, _ := readSteps(path, nil)
	return steps.LastStep, nil
}
