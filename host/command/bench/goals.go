package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Goal is a target for training on two GPUs, with the measured figure. The targets come from the documents of the
// dual-GPU training of MyXTTSModel. The documents do not name a model, so speed and memory by batch size are only a
// rough guide; shares and ratios are comparable.
type Goal struct {
	What    string `json:"what"`
	Minimum string `json:"minimum,omitempty"`
	Target  string `json:"target,omitempty"`
	Stretch string `json:"stretch,omitempty"`
	// Measured has the unit Unit: "%", "times", "rows", "steps/s", "GB". Null if it was not measured.
	Measured *float64 `json:"measured"`
	Unit     string   `json:"unit"`
	// Reached is the best level that was reached: "stretch", "target", "minimum", or "missed"; else "not measured".
	Reached string `json:"reached"`
	// Note names the measurement, or the reason why there is none.
	Note string `json:"note,omitempty"`
}

// Values of Reached.
const (
	Stretch     = "stretch"
	Target      = "target"
	Minimum     = "minimum"
	Missed      = "missed"
	NotMeasured = "not measured"
)

// level is a level of a target: its text, and the number from which it is reached. Without text there is no such level.
type level struct {
	text string
	from float64
}

// goal is a target from those documents.
type goal struct {
	what, unit               string
	lower                    bool // lower is better
	minimum, target, stretch level
}

// is completes a goal with the measured figure.
func (h goal) is(measured float64, note string) Goal {
	out := h.not(note)
	out.Measured, out.Reached = &measured, Missed
	for _, l := range []struct {
		name string
		level
	}{{Minimum, h.minimum}, {Target, h.target}, {Stretch, h.stretch}} {
		if l.text != "" && (measured == l.from || measured > l.from != h.lower) {
			out.Reached = l.name
		}
	}
	return out
}

// not completes a goal without a figure. why is the reason.
func (h goal) not(why string) Goal {
	return Goal{
		What: h.what, Unit: h.unit, Minimum: h.minimum.text, Target: h.target.text, Stretch: h.stretch.text,
		Reached: NotMeasured, Note: why,
	}
}

// from completes a goal with the ratio of two rows, if it exists.
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
	ofOneSync = goal{
		"two GPUs pipelined, of one GPU synchronous", "times", false, level{}, level{"1.5-2 times", 1.5},
		level{"2-3 times", 2},
	}
	ofOnePipe = goal{
		"two GPUs pipelined, of one GPU pipelined", "times", false, level{}, level{"1.5-2 times", 1.5},
		level{"2-3 times", 2},
	}
	ofTwoSync = goal{
		"two GPUs pipelined, of two GPUs synchronous", "times", false, level{}, level{"1.3-1.5 times", 1.3}, level{},
	}
	noSlower = goal{
		"one GPU pipelined, of one GPU synchronous", "times", false, level{"not slower", 1}, level{}, level{},
	}
	largest = goal{"largest batch", "rows", false, level{}, level{"32 rows", 32}, level{"48 rows on 24 GB", 48}}
)

// byBatch are the targets of speed and of memory in GB, by batch size.
var byBatch = map[int]struct {
	speed, memory level
}{
	8:  {level{"10-12 steps/s", 10}, level{"6 GB", 6}},
	16: {level{"6-8 steps/s", 6}, level{"10 GB", 10}},
	24: {level{"4-6 steps/s", 4}, level{"14 GB", 14}},
	32: {level{"3-5 steps/s", 3}, level{"18 GB", 18}},
}

// goals compares the measured figures with the targets.
func goals(r *Result) []Goal {
	batch := r.reference()
	pipelined := r.measured(batch, Variant{r.Placement, TripleBuffered})
	with := fmt.Sprintf("batch %d, %s", batch, TripleBuffered)
	missing := fmt.Sprintf("%s: no run", with)
	noGPU, two := r.Placement == OnCPU, r.Placement == TwoGPUs
	oneGPU := "no separate data GPU"
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
		add(ofOneSync.from(r.ratio(batch, Variant{OneGPU, Synchronous}, pipelined),
			with+"; plugins and model share the one GPU", missing))
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
		add(noSlower.from(r.ratio(batch, Variant{one, Synchronous}, r.measured(batch, Variant{one, TripleBuffered})),
			with+", "+one, missing))
	}
	return append(all, r.goalsByBatch(noGPU)...)
}

// reference is the batch size for ratios and shares: the largest up to 32, the target's, that ran; else the smallest; 0
// for none.
func (r *Result) reference() int {
	best := 0
	for _, n := range slices.Sorted(slices.Values(r.BatchSizes)) {
		if r.measured(n, Variant{r.Placement, TripleBuffered}) != nil && (best == 0 || n <= 32) {
			best = n
		}
	}
	return best
}

// goalsByBatch returns the goals of single batch sizes.
func (r *Result) goalsByBatch(noGPU bool) []Goal {
	var speeds, memory []Goal
	for _, n := range slices.Sorted(slices.Values(r.BatchSizes)) {
		want, ok := byBatch[n]
		if !ok {
			continue
		}
		speed := goal{what: fmt.Sprintf("speed at batch %d", n), unit: "steps/s", target: want.speed}
		used := goal{
			what: fmt.Sprintf("model GPU's memory at batch %d", n), unit: "GB", lower: true, target: want.memory,
		}
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

// largest returns the largest batch size that ran.
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

// feeds returns how many model GPUs a data GPU could prepare batches for, from its utilization and its longest stage.
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
	return fmt.Sprintf("not a fault: %s, so this data GPU could serve %d model GPUs", text, int(most))
}

// stageMs returns the time of the longest stage for a batch, in ms.
func (f *Figures) stageMs() float64 {
	longest := 0.0
	for _, p := range f.PhasesMs { // decode, the stages, transfer, then the phases of a step
		if p.Name == "transfer" {
			break
		}
		if p.Name != "decode" {
			longest = max(longest, p.Ms)
		}
	}
	return longest
}

// GoalTable returns the targets and the measured figures as a table, to print after Compare. What was not measured is
// listed below it.
func (r *Result) GoalTable() string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if slices.ContainsFunc(r.Goals, func(h Goal) bool { return h.Measured != nil }) {
		fmt.Fprintln(t, "goal\tminimum\ttarget\tstretch\tmeasured\t")
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	var reasons []string
	missing := map[string][]string{} // by reason
	for _, h := range r.Goals {
		if h.Measured == nil {
			if missing[h.Note] == nil {
				reasons = append(reasons, h.Note)
			}
			missing[h.Note] = append(missing[h.Note], h.What)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g %s\t%s\n", h.What, dash(h.Minimum), dash(h.Target), dash(h.Stretch),
			*h.Measured, h.Unit, h.mark())
	}
	t.Flush()
	for _, why := range reasons {
		fmt.Fprintf(&text, "not measured (%s): %s\n", why, strings.Join(missing[why], "; "))
	}
	return text.String()
}

// mark returns a tick with the level or a cross, followed by the note.
func (h *Goal) mark() string {
	text := map[string]string{
		Stretch: "✓ stretch", Target: "✓", Minimum: "✗ minimum only", Missed: "✗ missed",
	}[h.Reached]
	if h.Reached == Minimum && h.Target == "" {
		text = "✓"
	}
	if h.Note != "" {
		text += ": " + h.Note
	}
	return text
}
