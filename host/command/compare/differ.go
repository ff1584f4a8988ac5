package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/record"
)

// Difference is a setting that runs do not have in common.
type Difference struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // in the order of the runs; "" if a run has no such setting
}

// ofTheRun are settings that name a run, or where things are, or what is shown: they change neither speed nor losses.
var ofTheRun = []string{
	"run-dir", "resume", "resume-or-start", "allow", "cache-dir", "log-every", "debug-dir", "trace", "trace-steps",
	"disk-wait", "ort-lib", "plugins", "keep-last", "samples", "spoken-clips", "keep-media", "tensorboard", "metrics",
	"trace-nan", "probe", "recognizer", "dashboard",
}

// ofItsLength are settings of how long a run is and how often it is interrupted: steps are as fast with others.
var ofItsLength = []string{
	"max-steps", "epochs", "eval-every", "checkpoint-every", "checkpoint-minutes", "early-stop", "early-stop-delta",
	"max-skipped",
}

// differences are the settings that differ, without those of a run.
func differences(runs []*record.Run) (list []Difference) {
	var names []string
	seen := map[string]bool{}
	for _, r := range runs {
		for _, s := range r.Settings {
			if !seen[s.Name] && !slices.Contains(ofTheRun, s.Name) {
				seen[s.Name] = true
				names = append(names, s.Name)
			}
		}
	}
	for _, name := range names {
		d := Difference{Name: name}
		var first *string
		same := true
		for _, r := range runs {
			value, ok := r.Lookup(name)
			d.Values = append(d.Values, value)
			if ok && first == nil { // a run of an earlier version of the program may not have the setting
				first = &value
			}
			same = same && (!ok || value == *first)
		}
		if !same {
			list = append(list, d)
		}
	}
	return list
}

// Sweep is a setting in which alone the runs differ.
type Sweep struct {
	Setting string `json:"setting"`
	Unit    string `json:"unit,omitempty"` // "GiB" of a memory limit
	// Points are the runs in the order of their values.
	Points []SweepPoint `json:"points"`
	// Ideal says that Points have the frames a second of a batch that is free: in proportion to the smallest.
	Ideal bool `json:"ideal,omitempty"`
}

// SweepPoint is a run of a sweep.
type SweepPoint struct {
	Run   int      `json:"run"` // its place in the list of runs
	Value string   `json:"value"`
	X     float64  `json:"x"`
	Ideal *float64 `json:"ideal_frames_per_second,omitempty"`
	// Efficiency is the share of the ideal.
	Efficiency *float64 `json:"efficiency,omitempty"`
}

const batchSize = "batch-size"

// memoryLimits differ together where cards of several sizes are tried.
var memoryLimits = []string{"model-gpu-memory", "data-gpu-memory", "enable-memory-isolation"}

// sweepOf finds the one setting in which the runs differ, apart from their lengths. It is nil if there are several, or
// other numbers of ranks, which are no setting.
func sweepOf(list []Difference, runs []Entry) *Sweep {
	var left []Difference
	for _, d := range list {
		if !slices.Contains(ofItsLength, d.Name) {
			left = append(left, d)
		}
	}
	inMemory := func(d Difference) bool { return slices.Contains(memoryLimits, d.Name) }
	if len(left) > 1 && !slices.ContainsFunc(left, func(d Difference) bool { return !inMemory(d) }) {
		slices.SortFunc(left, func(a, b Difference) int {
			return slices.Index(memoryLimits, a.Name) - slices.Index(memoryLimits, b.Name)
		})
		left = left[:1]
	}
	if len(left) != 1 || otherRanks(runs) {
		return nil
	}
	d := left[0]
	s := &Sweep{Setting: d.Name}
	for i, value := range d.Values {
		x, unit := numberOf(value)
		if math.IsNaN(x) {
			x = float64(i)
		}
		s.Unit = unit
		s.Points = append(s.Points, SweepPoint{Run: i, Value: value, X: x})
	}
	slices.SortStableFunc(s.Points, func(a, b SweepPoint) int { return cmp.Compare(a.X, b.X) })
	if d.Name == batchSize {
		s.scale(runs)
	}
	return s
}

// scale compares the frames a second of batches with those of the smallest batch, times its multiple: what a device
// would do on which a larger batch takes no more time.
func (s *Sweep) scale(runs []Entry) {
	first := s.Points[0]
	base := s.mean(runs, first.X)
	if !(first.X > 0) || !(base > 0) {
		return
	}
	s.Ideal = true
	for i := range s.Points {
		p := &s.Points[i]
		ideal := base * p.X / first.X
		share := runs[p.Run].FramesPerSecond.Value / ideal
		if !math.IsInf(ideal, 0) && !math.IsInf(share, 0) {
			p.Ideal, p.Efficiency = &ideal, &share
		}
	}
}

// mean is the mean of the frames per second of the runs with a value.
func (s *Sweep) mean(runs []Entry, x float64) float64 {
	sum, n := 0.0, 0.0
	for _, p := range s.Points {
		if v := runs[p.Run].FramesPerSecond.Value; p.X == x && v > 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / max(1, n)
}

// numberOf reads a value: a number, or a size as a number of GiB. It is NaN for another text.
func numberOf(value string) (x float64, unit string) {
	for suffix, factor := range map[string]float64{"KiB": 1.0 / (1 << 20), "MiB": 1.0 / 1024, "GiB": 1, "TiB": 1024} {
		if digits, ok := strings.CutSuffix(value, suffix); ok {
			if v, err := strconv.ParseFloat(digits, 64); err == nil {
				return v * factor, "GiB"
			}
		}
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN(), ""
	}
	return v, ""
}

// Remark says what makes figures of the runs not comparable.
type Remark struct {
	What string `json:"what"`
	// Affects are of "speed", "losses" and "speech".
	Affects []string `json:"affects"`
}

// differ says what a text of each run is; "" if they are the same. What is not known of a run is left out.
func differ(runs []Entry, of func(r *Entry) string) string { return differIn(runs, of, of) }

// differIn is differ for a text that is shown, while another one decides if it is the same.
func differIn(runs []Entry, shown, decides func(r *Entry) string) string {
	var parts []string
	first, same := "", true
	for i := range runs {
		if text := decides(&runs[i]); text != "" {
			parts = append(parts, runs[i].Letter+" "+shown(&runs[i]))
			first = cmp.Or(first, text)
			same = same && text == first
		}
	}
	if same {
		return ""
	}
	return strings.Join(parts, ", ")
}

// remarks are why figures are not comparable.
func remarks(all []*record.Run, runs []Entry) (list []Remark) {
	say := func(what string, affects ...string) { list = append(list, Remark{what, affects}) }
	for _, c := range []struct {
		name    string
		of      func(r *Entry) string
		affects []string
	}{
		{"the bundles differ", func(r *Entry) string { return r.Bundle }, []string{"speed", "losses"}},
		{"the training graphs differ", func(r *Entry) string { return r.graph }, []string{"speed", "losses"}},
		{"the devices differ", func(r *Entry) string { return r.Device }, []string{"speed"}},
		{"the precisions differ", func(r *Entry) string { return r.Precision }, []string{"speed", "losses"}},
		{"the training data differ", func(r *Entry) string { return r.data }, []string{"speed", "losses"}},
		{"the validation data differ", func(r *Entry) string { return r.validation }, []string{"losses"}},
	} {
		if text := differ(runs, c.of); text != "" {
			say(c.name+": "+text, c.affects...)
		}
	}
	if text := differIn(runs, (*Entry).batch, knownWork(runs)); text != "" {
		say("the batches differ, so a step is not the same work: compare frames/s, and losses at equal time: "+text,
			"speed", "losses")
	}
	names := map[string]bool{}
	for i := range runs {
		for name := range runs[i].versions {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if text := differ(runs, func(r *Entry) string { return r.versions[name] }); text != "" {
			say("the versions of "+name+" differ: "+text, "speed")
		}
	}
	for i := range runs {
		r := &runs[i]
		switch {
		case all[i].Report == nil:
			say(r.Letter+" is "+record.Unfinished+", and has no report that can be read: its figures are of its "+
				"steps, and its device, bundle, data and ranks are not known", "speed", "losses")
		case r.Outcome == record.Unfinished:
			say(r.Letter+" is "+record.Unfinished+": its figures are of its steps", "speed", "losses")
		case r.Outcome != record.Done:
			say(r.Letter+" is not done: its state is "+r.Outcome, "losses")
		}
		if r.FramesPerSecond.Value > 0 && r.FramesPerSecond.Low == nil {
			say(fmt.Sprintf("%s has fewer than %d steps that count: its speed has no interval", r.Letter, leastSteps),
				"speed")
		}
		for _, problem := range all[i].Problems {
			if r.Outcome != record.Unfinished || !strings.HasPrefix(problem, "report.json is") {
				say(r.Letter + ": " + problem)
			}
		}
	}
	return list
}
