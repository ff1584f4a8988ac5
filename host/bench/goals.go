package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Goal is a figure that training on two GPUs is to reach, beside ours. Source of the goals: the documents of the dual-GPU
// training of MyXTTSModel. They name no model, so speeds and memory by batch size compare roughly at best; shares and ratios
// compare.
type Goal struct {
	What    string `json:"what"`
	Minimum string `json:"minimum,omitempty"`
	Target  string `json:"target,omitempty"`
	Stretch string `json:"stretch,omitempty"`
	// Ours is in Unit: "%", "times", "rows", "steps/s", "GB". Null where it was not measured.
	Ours *float64 `json:"ours"`
	Unit string   `json:"unit"`
	// Reached is the best that was: "stretch", "target", "minimum", or "missed"; else "not measured".
	Reached string `json:"reached"`
	// Note says with what it was measured, or why it was not.
	Note string `json:"note,omitempty"`
}

// The values of Reached.
const (
	Stretch     = "stretch"
	Target      = "target"
	Minimum     = "minimum"
	Missed      = "missed"
	NotMeasured = "not measured"
)

// level is what is to be reached, as text and as the number from which it is. Without text there is none.
type level struct {
	text string
	from float64
}

// goal is a row of the founding documents.
type goal struct {
	what, unit               string
	lower                    bool // is better
	minimum, target, stretch level
}

// is completes a goal with our figure.
func (h goal) is(ours float64, note string) Goal {
	out := h.not(note)
	out.Ours, out.Reached = &ours, Missed
	for _, l := range []struct {
		name string
		level
	}{{Minimum, h.minimum}, {Target, h.target}, {Stretch, h.stretch}} {
		if l.text != "" && (ours == l.from || ours > l.from != h.lower) {
			out.Reached = l.name
		}
	}
	return out
}

// not says why there is no figure.
func (h goal) not(why string) Goal {
	return Goal{What: h.what, Unit: h.unit, Minimum: h.minimum.text, Target: h.target.text, Stretch: h.stretch.text, Reached: NotMeasured, Note: why}
}

// from completes a goal with a ratio of two rows, if there is one.
func (h goal) from(ratio *Spread, note, why string) Goal {
	if ratio == nil {
		return h.not(why)
	}
	if ratio.Min != ratio.Max {
		note = fmt.Sprintf("%.2f to %.2f by round; %s", ratio.Min, ratio.Max, note)
	}
	return h.is(ratio.Median, note)
}

var (
	modelBusy = goal{"model GPU busy", "%", false, level{"> 70 %", 70}, level{"80-95 %", 80}, level{"> 90 %", 90}}
	dataBusy  = goal{"data GPU busy", "%", false, level{"30-50 %", 30}, level{"40-60 %", 40}, level{"> 60 %", 60}}
	variation = goal{"step-time variation", "%", true, level{"< 40 %", 40}, level{"< 30 %", 30}, level{"< 20 %", 20}}
	ofOneSync = goal{"two GPUs pipelined, of one GPU synchronous", "times", false, level{}, level{"1.5-2", 1.5}, level{"2-3", 2}}
	ofOnePipe = goal{"two GPUs pipelined, of one GPU pipelined", "times", false, level{}, level{"1.5-2", 1.5}, level{"2-3", 2}}
	ofTwoSync = goal{"two GPUs pipelined, of two GPUs synchronous", "times", false, level{}, level{"1.3-1.5", 1.3}, level{}}
	noSlower  = goal{"one GPU pipelined, of one GPU synchronous", "times", false, level{"not slower", 1}, level{}, level{}}
	largest   = goal{"largest batch", "rows", false, level{}, level{"32", 32}, level{"48 on 24 GB", 48}}
)

// byBatch are the speed and the memory in GB to reach by batch size.
var byBatch = map[int]struct {
	speed, memory level
}{
	8:  {level{"10-12", 10}, level{"6", 6}},
	16: {level{"6-8", 6}, level{"10", 10}},
	24: {level{"4-6", 4}, level{"14", 14}},
	32: {level{"3-5", 3}, level{"18", 18}},
}

// goals puts our figures beside those to reach.
func goals(r *Result) []Goal {
	batch := r.reference()
	pipelined := r.measured(batch, Variant{r.Placement, TripleBuffered})
	with := fmt.Sprintf("batch %d, %s", batch, TripleBuffered)
	missing := fmt.Sprintf("%s: no run", with)
	noGPU, two := r.Placement == OnCPU, r.Placement == TwoGPUs
	oneGPU := "no GPU of its own for the data"
	if noGPU {
		oneGPU = "no GPU"
	}
	var all []Goal
	add := func(h Goal) { all = append(all, h) }

	switch g := pipelined.gpu("model"); {
	case noGPU:
		add(modelBusy.not("no GPU"))
	case g == nil || g.Samples == 0:
		add(modelBusy.not("the driver gave no sample"))
	default:
		add(modelBusy.is(100*g.Busy, with))
	}
	switch g := pipelined.gpu("data"); {
	case !two:
		add(dataBusy.not(oneGPU))
	case g == nil || g.Samples == 0:
		add(dataBusy.not("the driver gave no sample"))
	default:
		add(dataBusy.is(100*g.Busy, with+"; "+pipelined.feeds()))
	}
	if pipelined == nil {
		add(variation.not(missing))
	} else {
		add(variation.is(100*pipelined.StepMs.Variation, with))
	}
	if two {
		add(ofOneSync.from(r.ratio(batch, Variant{OneGPU, Synchronous}, pipelined), with+"; plugins and model share the one GPU", missing))
		add(ofOnePipe.from(r.ratio(batch, Variant{OneGPU, TripleBuffered}, pipelined), with, missing))
		add(ofTwoSync.from(r.ratio(batch, Variant{TwoGPUs, Synchronous}, pipelined), with, missing))
	} else {
		for _, h := range []goal{ofOneSync, ofOnePipe, ofTwoSync} {
			add(h.not(oneGPU))
		}
	}
	one := r.Placement
	if two {
		one = OneGPU
	}
	if noGPU {
		add(noSlower.not("no GPU"))
	} else {
		add(noSlower.from(r.ratio(batch, Variant{one, Synchronous}, r.measured(batch, Variant{one, TripleBuffered})), with+", "+one, missing))
	}
	return append(all, r.goalsByBatch(noGPU)...)
}

// reference is the batch size by which ratios and shares are given: the largest that ran of up to 32, which was the target; else
// the smallest; 0 for none.
func (r *Result) reference() int {
	best := 0
	for _, n := range slices.Sorted(slices.Values(r.BatchSizes)) {
		if r.measured(n, Variant{r.Placement, TripleBuffered}) != nil && (best == 0 || n <= 32) {
			best = n
		}
	}
	return best
}

// goalsByBatch are those of batch sizes.
func (r *Result) goalsByBatch(noGPU bool) []Goal {
	var speeds, memory []Goal
	for _, n := range slices.Sorted(slices.Values(r.BatchSizes)) {
		want, ok := byBatch[n]
		if !ok {
			continue
		}
		speed := goal{what: fmt.Sprintf("speed at batch %d", n), unit: "steps/s", target: want.speed}
		used := goal{what: fmt.Sprintf("model GPU's memory at batch %d", n), unit: "GB", lower: true, target: want.memory}
		row := r.measured(n, Variant{r.Placement, TripleBuffered})
		why := TripleBuffered + ": no run"
		if noGPU {
			row, why = nil, "no GPU"
		}
		if row == nil {
			speeds, memory = append(speeds, speed.not(why)), append(memory, used.not(why))
			continue
		}
		speeds = append(speeds, speed.is(row.StepsPerSecond, r.Bundle))
		if g := row.gpu("model"); g == nil || g.PeakBytes == 0 {
			memory = append(memory, used.not("the driver does not say"))
		} else {
			memory = append(memory, used.is(float64(g.PeakBytes)/1e9, r.Bundle))
		}
	}
	return slices.Concat([]Goal{r.largest(noGPU)}, speeds, memory)
}

// largest is the largest batch that ran.
func (r *Result) largest(noGPU bool) Goal {
	ran, failed := 0, 0
	for _, n := range r.BatchSizes {
		v := Variant{r.Placement, TripleBuffered}
		if r.measured(n, v) != nil {
			ran = max(ran, n)
		} else if r.Failed(n, v) && (failed == 0 || n < failed) {
			failed = n
		}
	}
	switch {
	case noGPU:
		return largest.not("no GPU")
	case ran == 0:
		return largest.not("no batch ran")
	case failed > ran:
		return largest.is(float64(ran), fmt.Sprintf("%d does not", failed))
	case r.Interrupted:
		return largest.is(float64(ran), "larger ones were not tried")
	}
	return largest.is(float64(ran), "no larger one was asked for")
}

// feeds says how many model GPUs a data GPU could prepare batches for, by how busy it was and by the longest of its stages.
func (row *Row) feeds() string {
	g, stage := row.gpu("data"), row.stageMs()
	if g.Busy == 0 && g.PeakBytes == 0 {
		return "no stage ran on it"
	}
	most := math.Inf(1)
	if g.Busy > 0 {
		most = 1 / g.Busy
	}
	if stage > 0 {
		most = min(most, row.StepMs.Mean/stage)
	}
	text := fmt.Sprintf("its longest stage takes %.1f ms of a step of %.1f", stage, row.StepMs.Mean)
	if most < 2 || math.IsInf(most, 1) {
		return text
	}
	return fmt.Sprintf("low is a result: %s, so it could feed %d such model GPUs", text, int(most))
}

// stageMs is the time that the longest stage takes for a batch, in ms.
func (f *Figures) stageMs() float64 {
	longest := 0.0
	for _, p := range f.PhasesMs { // decode, the stages, transfer, and then those of steps
		if p.Name == "transfer" {
			break
		}
		if p.Name != "decode" {
			longest = max(longest, p.Ms)
		}
	}
	return longest
}

// GoalTable returns the goals beside our figures, for people. It comes after Compare.
func (r *Result) GoalTable() string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "hoped for\tminimum\ttarget\tstretch\tours\t")
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, h := range r.Goals {
		ours := "-"
		if h.Ours != nil {
			ours = fmt.Sprintf("%.4g %s", *h.Ours, h.Unit)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", h.What, dash(h.Minimum), dash(h.Target), dash(h.Stretch), ours, h.mark())
	}
	t.Flush()
	return text.String()
}

// mark is a tick and what was reached, a cross, or a dash; and the note.
func (h *Goal) mark() string {
	text := map[string]string{Stretch: "✓ stretch", Target: "✓", Minimum: "✗ minimum only", Missed: "✗ missed", NotMeasured: "– not measured"}[h.Reached]
	if h.Reached == Minimum && h.Target == "" {
		text = "✓"
	}
	if h.Note != "" {
		text += ": " + h.Note
	}
	return text
}
