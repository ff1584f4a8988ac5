package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Result is a comparison. As JSON it is the output of `compare --json`. The first run is the baseline.
type Result struct {
	Version int     `json:"version"`
	Runs    []Entry `json:"runs"`
	// Comparable says that nothing of Remarks affects speeds, losses or measures of speech. ComparableSpeech is false
	// without measures, too.
	ComparableSpeed  bool     `json:"comparable_speed"`
	ComparableLosses bool     `json:"comparable_losses"`
	ComparableSpeech bool     `json:"comparable_speech"`
	Remarks          []Remark `json:"remarks"`
	// EqualStep is the last step that all runs have, EqualTimeS the time of steps that all have, in seconds.
	EqualStep  int64   `json:"equal_step"`
	EqualTimeS float64 `json:"equal_time_s"`
	// Evaluated is the last step after which all runs were evaluated; 0 for none.
	Evaluated   int64        `json:"evaluated_step"`
	Differences []Difference `json:"differences"`
	Sweep       *Sweep       `json:"sweep,omitempty"`
	Method      string       `json:"method"`
}

// Method says what the intervals are.
const Method = "95 % confidence intervals, from the means of long blocks of steps (at least ten), so that " +
	"correlated step times do not make them too short; without the first step of a process. They say how well the " +
	"runs measure their speeds, not how much another run of the same settings differs: repeat runs for that."

// Entry is what is compared of a run.
type Entry struct {
	Letter  string `json:"letter"`
	Folder  string `json:"folder"`
	Outcome string `json:"outcome"`

	Bundle     string `json:"bundle,omitempty"`
	Device     string `json:"device,omitempty"`
	Precision  string `json:"precision,omitempty"`
	BatchSize  string `json:"batch_size,omitempty"`
	Accumulate string `json:"accumulate,omitempty"`
	// Ranks is the number of processes that train the model, which a run without a report does not say: absent.
	Ranks int `json:"ranks,omitempty"`

	Steps           int64    `json:"steps"`
	StepsPerMinute  Interval `json:"steps_per_minute"`
	FramesPerSecond Interval `json:"frames_per_second"`
	// SpeedUp is of steps, SpeedUpFrames of frames; null for the baseline, and if one of the two has no speed.
	SpeedUp       *Interval `json:"speed_up"`
	SpeedUpFrames *Interval `json:"speed_up_frames"`

	StepMs Times `json:"step_ms"`
	// InputStall is the share of the time of steps in which training waited.
	InputStall  float64              `json:"input_stall_ratio"`
	Utilization []report.Utilization `json:"utilization"`
	Memory      []report.Memory      `json:"memory"`
	WallS       float64              `json:"wall_s,omitempty"`

	LossFirst  report.Float `json:"loss_first"`
	AtStep     At           `json:"at_equal_step"`
	AtTime     At           `json:"at_equal_time"`
	AtEnd      At           `json:"at_end"`
	Evaluation report.Float `json:"at_evaluated_step"` // null if the runs have no such step
	Best       *report.Best `json:"best"`

	// LastSpeech is what the last evaluation that spoke has spoken, BestSpeech what the best one has; null without one.
	LastSpeech *Speech `json:"last_speech"`
	BestSpeech *Speech `json:"speech_of_best"`

	graph, data, validation string
	recognizer              string
	versions                map[string]string
	steps, frames           rate
}

// Times describe the times of steps, without the first one of a process.
type Times struct {
	Mean      float64 `json:"mean"`
	Std       float64 `json:"std"`
	Variation float64 `json:"variation"`
	// WithinBucket is the largest variation within a bucket; absent without a report.
	WithinBucket float64 `json:"variation_within_bucket,omitempty"`
}

// of compares runs, of which the first is the baseline.
func of(all []*record.Run) *Result {
	r := &Result{Version: 1, Method: Method, Runs: []Entry{}}
	step, ms := equals(all)
	r.EqualStep, r.EqualTimeS = step, ms/1e3
	r.Evaluated = commonEvaluation(all, step)
	for i, run := range all {
		one := runOf(run, i)
		one.AtStep, one.AtTime = atStep(run, step), atStep(run, stepAfter(run, ms))
		one.Evaluation = report.Float(math.NaN())
		if r.Evaluated > 0 {
			one.Evaluation = report.Float(run.Evaluations.At(r.Evaluated).Loss)
		}
		if i > 0 {
			one.SpeedUp, one.SpeedUpFrames = one.steps.over(r.Runs[0].steps), one.frames.over(r.Runs[0].frames)
		}
		r.Runs = append(r.Runs, one)
	}
	r.Differences = append([]Difference{}, differences(all)...)
	r.Sweep = sweepOf(r.Differences, r.Runs)
	r.Remarks = append(append([]Remark{}, remarks(all, r.Runs)...), r.speechRemarks()...)
	affects := func(what string) bool {
		return slices.ContainsFunc(r.Remarks, func(m Remark) bool { return slices.Contains(m.Affects, what) })
	}
	r.ComparableSpeed, r.ComparableLosses = !affects("speed"), !affects("losses")
	r.ComparableSpeech = r.spoke() && !affects("speech")
	return r
}

// runOf takes the figures of a run.
func runOf(run *record.Run, i int) Entry {
	r := Entry{
		Letter: letter(i), Folder: run.Folder, Outcome: run.Status(), Steps: run.Steps.LastStep,
		BatchSize: run.Setting(batchSize), Accumulate: run.Setting("accumulate"),
		LossFirst: report.Float(run.Steps.First), Best: run.Best,
		AtEnd: atStep(run, run.Steps.LastStep), Utilization: []report.Utilization{}, Memory: []report.Memory{},
	}
	r.recognizer = run.Setting("recognizer")
	r.speak(run)
	pieces := run.Steps.Pieces
	r.steps = rateOf(pieces, func(p *record.Piece) float64 { return p.Timed })
	r.frames = rateOf(pieces, func(p *record.Piece) float64 { return p.Frames })
	r.StepsPerMinute, r.FramesPerSecond = r.steps.interval(60_000), r.frames.interval(1000)
	r.StepMs = times(run)
	if sum := run.Steps.Sum(); sum.Ms > 0 && !math.IsInf(sum.Ms+sum.Wait, 0) {
		r.InputStall = sum.Wait / sum.Ms
	}
	if rep := run.Report; rep != nil {
		r.of(rep)
	}
	return r
}

// of takes what only a report has.
func (r *Entry) of(rep *report.Report) {
	r.Bundle, r.Device, r.Precision, r.WallS = rep.Bundle, rep.Device, rep.Precision, rep.WallS
	r.Ranks = 1
	if rep.Process != nil { // Ranks of the report may lack one
		r.Ranks = max(1, rep.Process.Of)
	} else if len(rep.Ranks) > 0 {
		r.Ranks = len(rep.Ranks)
	}
	r.Memory = append(r.Memory, rep.Memory[:min(len(rep.Memory), 32)]...)
	for _, u := range rep.Utilization[:min(len(rep.Utilization), 32)] {
		if u.Measured() {
			r.Utilization = append(r.Utilization, u)
		}
	}
	if rep.InputStallRatio > 0 && rep.StepMs.Steps > 0 {
		r.InputStall = rep.InputStallRatio
	}
	for _, d := range rep.StepMs.ByBucket {
		if d.Steps > 1 {
			r.StepMs.WithinBucket = max(r.StepMs.WithinBucket, d.Variation)
		}
	}
	for _, g := range rep.Graphs {
		if g.Use == report.Training {
			r.graph += g.SHA256[:min(len(g.SHA256), 12)]
		}
	}
	of := func(d *report.DataList) string {
		return fmt.Sprintf("%s of %.1f s", units.Count(d.Clips, "clip"), d.Seconds)
	}
	if rep.Data.Train.Clips > 0 {
		r.data = of(&rep.Data.Train)
	}
	if v := rep.Data.Validation; v != nil {
		r.validation = of(v)
	}
	r.versions = rep.Versions
}

// times describes the timed steps. In a run of more than 65,536 steps a piece has several, whose deviations it does not
// have: there the report's are taken.
func times(run *record.Run) (t Times) {
	var n, mean, m2 float64
	for _, p := range run.Steps.Pieces {
		if p.Timed > 0 && run.Steps.Width == 1 {
			n++
			d := p.TimedMs - mean
			mean += d / n
			m2 += d * (p.TimedMs - mean)
		}
	}
	if n == 0 {
		if run.Report != nil {
			s := run.Report.StepMs
			return Times{Mean: s.Mean, Std: s.Std, Variation: s.Variation}
		}
		return t
	}
	t = Times{Mean: mean, Std: math.Sqrt(m2 / n)}
	if math.IsInf(t.Mean, 0) || math.IsNaN(t.Mean) || math.IsInf(t.Std, 0) || math.IsNaN(t.Std) {
		return Times{}
	}
	if mean > 0 {
		t.Variation = t.Std / mean
	}
	return t
}

// letter names a run: A, B, ..., Z, AA, AB, ...
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letter(i/26-1) + letter(i%26)
}
