package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// view is what the template of the page has.
type view struct {
	Run                        *record.Run
	Now                        time.Time
	Name, Model, Status, Tone  string
	VerdictTone                string
	Headline, Limit            string
	Advice, Problems, Warnings []string
	Parts                      []part
	Tiles                      []tile
	Results, TimeTables        []Table
	Curves, Time, Devices      []Figure
	Samples                    *Samples
	Plugins, Quarantine        *Table
	Data, Settings, Versions   []Table
	Probes                     *probes
	report                     *report.Report // never nil
}

// part is a section of the page.
type part struct{ ID, Title string }

// tile is a figure in large letters.
type tile struct{ Name, Value, Note string }

// mostLines bounds the lists of texts on a page.
const mostLines = 100

func viewOf(run *record.Run, link string, most int64, now time.Time) *view {
	v := &view{Run: run, Now: now, Name: nameOf(run.Folder), Status: run.Status(), report: run.Report}
	if v.report == nil {
		v.report = &report.Report{}
	}
	r := v.report
	v.Tone = record.StateOf(v.Status).Tone
	v.Model = strings.Join(nonempty(r.Bundle, r.Device, r.Precision, processes(r)), ", ")
	v.verdict()
	first := 0 // what comes first, after the end of a run that failed or diverged
	if v.Status == record.Failed || v.Status == record.Diverged {
		first = min(len(v.Advice), 1+len(advised(r.Hint)))
	}
	lines, poor := speech(run)
	v.Advice = slices.Insert(v.Advice, first, slices.Concat(traced(r.Warnings), lines)...)
	if v.VerdictTone = v.Tone; poor && v.Status == record.Done {
		v.VerdictTone = "warn"
	}
	v.Problems, v.Warnings = some(run.Problems), some(r.Warnings)
	v.Tiles, v.Results = v.tiles(), results(run, r)
	v.Curves = curves(run)
	media := NewMedia(most)
	if run.Spoken.Evaluations > 0 {
		v.Samples = SamplesOf(run, media, link)
	}
	v.Time, v.TimeTables = phases(r), timeTables(r)
	v.Devices = memory(r)
	v.Plugins, v.Quarantine = plugins(r), quarantine(&run.Quarantine)
	v.Data = data(r)
	v.Probes = probesOf(run, media, link)
	v.Settings = settings(run)
	v.Versions = versions(r)
	v.parts()
	return v
}

// processes says how many ranks train the model; "" if one process does.
func processes(r *report.Report) string {
	if r.Process == nil {
		return ""
	}
	if r.Process.Rank > 0 {
		return fmt.Sprintf("rank %d of %d", r.Process.Rank, r.Process.Of)
	}
	return Count(int64(r.Process.Of)) + " ranks"
}

// nameOf is the last part of a folder's path.
func nameOf(folder string) string {
	if abs, err := filepath.Abs(folder); err == nil {
		folder = abs
	}
	return filepath.Base(folder)
}

func nonempty(texts ...string) (list []string) {
	for _, t := range texts {
		if t != "" {
			list = append(list, t)
		}
	}
	return list
}

// some bounds a list of texts.
func some(list []string) []string {
	if len(list) <= mostLines {
		return list
	}
	return append(list[:mostLines:mostLines], fmt.Sprintf("... and %d more", len(list)-mostLines))
}

// verdict says how the run ended, and what limits it.
func (v *view) verdict() {
	r, steps := v.report, units.Count(max(0, v.Run.Steps.LastStep), "step")
	v.Advice = some(r.Verdict.Advice)
	switch v.Status {
	case record.Done:
		v.Headline = "The run is done, after " + steps + "."
		if e := r.EarlyStop; e != nil {
			better := "lower validation loss"
			if e.By != "" {
				better = "better " + e.By
			}
			v.Headline = fmt.Sprintf("The run stopped early, after %s: %s without a %s.", steps,
				units.Count(max(0, e.Evaluations), "evaluation"), better)
		}
	case record.Interrupted:
		v.Headline = "The run was interrupted, after " + steps + "."
		v.Advice = append([]string{"Continue it: " + hint.Command("--resume "+hint.Path(v.Run.Folder))}, v.Advice...)
	case record.Diverged:
		v.Headline = "The run diverged: its model is ruined, after " + steps + "."
		v.Advice = append(v.Advice, advised(r.Hint)...)
	case record.Failed:
		v.Headline = "The run failed, after " + steps + "."
		v.Advice = slices.Concat([]string{r.Outcome + "."}, advised(r.Hint), v.Advice)
	default:
		v.Headline = fmt.Sprintf("The run is unfinished, after %s. %s", steps, record.StateOf(v.Status).Means)
		sum := v.Run.Steps.Sum()
		v.Advice = nil
		if saved, err := rundir.Steps(files.In(v.Run.Folder, rundir.Checkpoints)); err == nil && len(saved) > 0 {
			v.Advice = []string{fmt.Sprintf("If it was killed, continue it from step %d: %s", saved[len(saved)-1],
				hint.Command("--resume "+hint.Path(v.Run.Folder)))}
		}
		if sum.Ms > 0 {
			v.Limit = fmt.Sprintf("Input stall so far: %s of the time of the steps.", Percent(sum.Wait/sum.Ms))
		}
		return
	}
	if b := r.Verdict.Bottleneck; b != "" && !r.Verdict.Diverged {
		v.Limit = "Limited by: " + bottleneck(b) + "."
	}
	if s := r.Verdict.SecondGPU; s != nil {
		v.Advice = append(v.Advice, fmt.Sprintf("A second GPU: speed-up at most %s: %s", units.Number(s.Times),
			s.Reason))
	}
}

// traced is the first warning of a step that is not finite, if there is one.
func traced(warnings []string) []string {
	if i := slices.IndexFunc(warnings, report.Traced); i >= 0 {
		return []string{warnings[i] + "."}
	}
	return nil
}

// advised is the hint of an error as a sentence.
func advised(text string) []string {
	if text == "" {
		return nil
	}
	return []string{"What to do: " + text}
}

// bottleneck explains the name of a phase.
func bottleneck(name string) string {
	switch name {
	case "train":
		return "training itself, as batches are ready in time"
	case "unknown":
		return "unknown, the run is too short"
	}
	return name + ", which training waits for"
}

// parts are the sections that the page has.
func (v *view) parts() {
	for _, p := range []struct {
		has       bool
		id, title string
	}{
		{true, "verdict", "Verdict"}, {true, "numbers", "Numbers"}, {v.Curves != nil, "curves", "Curves"},
		{v.Samples != nil, "samples", "Samples"}, {v.Time != nil, "time", "Step time"},
		{v.Devices != nil, "devices", "Devices"}, {v.Plugins != nil, "plugins", "Plugins"}, {v.Data != nil, "data",
			"Data"},
		{v.Quarantine != nil, "quarantine", "Unusable clips"}, {v.Probes != nil, "probes", "Probes"},
		{len(v.Warnings) > 0, "warnings", "Warnings"}, {v.Settings != nil, "settings", "Settings"},
		{v.Versions != nil, "versions", "Versions"},
	} {
		if p.has {
			v.Parts = append(v.Parts, part{p.id, p.title})
		}
	}
}

// tiles are the figures of the whole run. Those of a run without a report are of its lines.
func (v *view) tiles() []tile {
	s, r := v.Run.Steps, v.report
	perSecond, frames := r.StepsPerSecond, r.FramesPerSecond
	if v.Status == record.Unfinished {
		perSecond, frames = s.Speed()
	}
	list := []tile{{"steps", Count(s.LastStep), skipped(s)}}
	if s.Count > s.Skipped {
		list = append(list, tile{"training loss", units.Number(s.First) + " → " + units.Number(s.Last),
			"lowest " + units.Number(s.Best)})
	}
	switch b := v.Run.Best; {
	case b != nil:
		value, note := units.Number(float64(b.Loss)), "step "+Count(b.Step)
		if b.Value != nil {
			value, note = units.Number(float64(*b.Value)), "by "+b.By+", "+note+", loss "+value
		}
		list = append(list, tile{"best evaluation", value, note})
	case v.Run.Report != nil && r.Data.Validation == nil && v.Run.Evaluations.Count == 0:
		list = append(list, tile{"best evaluation", "none", "no validation data"})
	}
	list = append(list,
		tile{"speed", Rate(60*perSecond) + " steps/min", Rate(perSecond) + " steps/s"},
		tile{"frames", Rate(frames) + " /s", Count(s.Frames) + " in all"})
	if r.WallS > 0 {
		list = append(list, tile{"wall time", Duration(r.WallS), wall(&r.TimeS, r.ResumedAt)})
	}
	if r.StepMs.Steps > 0 {
		list = append(list,
			tile{"input stall", Percent(r.InputStallRatio), "of the training time"},
			tile{"step time", Milliseconds(r.StepMs.Mean), "± " + Milliseconds(r.StepMs.Std) + ", variation " +
				Percent(r.StepMs.Variation)},
			tile{"transfers hidden", Percent(r.TransferHiddenRatio), "of the transfer time"})
	}
	list = append(list, tile{"samples", Count(s.Samples), "clips trained on"})
	for i := range list { // a number stays with its unit
		list[i].Value, list[i].Note = unbroken.Replace(list[i].Value), unbroken.Replace(list[i].Note)
	}
	return list
}

var unbroken = strings.NewReplacer(" %", "\u00a0%", " ms", "\u00a0ms", " /s", "\u00a0/s")

func skipped(s *record.Steps) string {
	if s.Skipped == 0 {
		return "none skipped"
	}
	return Count(s.Skipped) + " skipped"
}

func wall(t *report.WallTime, resumed int64) string {
	text := "training " + Duration(t.Training)
	if resumed > 0 {
		text += ", since step " + Count(resumed)
	}
	return text
}
