package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/stat"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Pace measures how fast and how even the steps are, and finds why they are uneven. The zero value measures nothing.
type Pace struct {
	// Every is the number of steps between progress lines. Ten progress lines make a period, but at least 20 steps do.
	// 0 switches it off.
	Every int64
	// Setup has the settings that the advice may suggest to change.
	Setup bottleneck.Setup
	// Pipeline has the pipeline's figures since the start of the run.
	Pipeline interface{ Stats() pipeline.Stats }

	started bool
	since   pace
	before  pipeline.Stats // at the start of the period
	warned  string         // the cause named by the last warning; "" if the last period was even
}

const (
	// paceLines progress lines make a period.
	paceLines = 10
	// paceSteps is the least number of steps from which a variation is computed.
	paceSteps = 20
)

// pace sums up one period. Times are kept by bucket: longer batches take longer, which is not jitter.
type pace struct {
	span
	buckets map[int]*[1 + len(stepParts)]stat.Moments // the whole step, then its parts
}

// stepParts are the parts of a step, in the order of report.json's phases. partsOf returns their times.
var stepParts = [...]string{"wait", "train", "optimizer", "other"}

func partsOf(t *event.Times) [len(stepParts)]time.Duration {
	return [...]time.Duration{t.InputWait, t.Train, t.Optimize, t.Other()}
}

func (p *pace) add(w *event.Step) {
	p.span.add(w)
	if p.buckets == nil {
		p.buckets = map[int]*[1 + len(stepParts)]stat.Moments{}
	}
	b := p.buckets[w.Bucket]
	if b == nil {
		b = new([1 + len(stepParts)]stat.Moments)
		p.buckets[w.Bucket] = b
	}
	b[0].Add(millis(w.Time))
	for i, d := range partsOf(&w.Times) {
		b[1+i].Add(millis(d))
	}
}

// std returns the standard deviation within buckets, in ms: the root of the mean squared distance from the mean of the
// bucket. which is 0 for the step, 1+i for stepParts[i].
func (p *pace) std(which int) float64 {
	sum := 0.0
	for _, b := range p.buckets {
		sum += b[which].M2
	}
	return math.Sqrt(sum / float64(max(1, p.steps)))
}

// uneven returns the part of a step with the largest variation.
func (p *pace) uneven() string {
	worst := 0
	for i := range stepParts {
		if p.std(1+i) > p.std(1+worst) {
			worst = i
		}
	}
	return stepParts[worst]
}

// Step counts a step. If a period ends with it, found has the period's figures, and is nil otherwise. warning names the
// cause of uneven steps and a fix; it is repeated only for another cause or after an even period. The first step of the
// process is left out.
func (p *Pace) Step(w *event.Step) (found *event.Pace, warning string) {
	if p.Every <= 0 {
		return nil, ""
	}
	if !p.started {
		p.started = true
		p.before = p.Pipeline.Stats()
		return nil, ""
	}
	p.since.add(w)
	if w.Step%max(paceSteps, paceLines*p.Every) != 0 {
		return nil, ""
	}
	now := p.Pipeline.Stats()
	found = p.since.figures(w.Step)
	warning = p.warn(found.Variation, between(p.before, now))
	p.since, p.before = pace{}, now
	return found, warning
}

// figures sums up the period that ends with a step.
func (p *pace) figures(step int64) *event.Pace {
	f := &event.Pace{
		Step: step, Mean: millis(p.time) / float64(p.steps), Std: p.std(0), Stall: ratio(p.wait, p.time),
		Rate: float64(p.steps) / max(p.time.Seconds(), 1e-9),
	}
	if f.Mean > 0 {
		f.Variation = f.Std / f.Mean
	}
	return f
}

// paceLine returns the line of a period.
func paceLine(p *event.Pace) string {
	return fmt.Sprintf("pipeline  step %.1f ± %.1f ms  %s steps/s  variation %s  stall %s",
		p.Mean, p.Std, units.Rate(p.Rate), units.Percent(p.Variation), units.Percent(p.Stall))
}

// warn returns the warning of a period whose steps vary by a share, "" for none.
func (p *Pace) warn(variation float64, s pipeline.Stats) string {
	if p.since.steps < paceSteps {
		return "" // resumed in the middle of a period
	}
	if variation <= bottleneck.MostVariation {
		p.warned = ""
		return ""
	}
	cause, advice := p.cause(s)
	if cause == p.warned {
		return ""
	}
	p.warned = cause
	return fmt.Sprintf("step time varies by %s within a bucket, most of it in %s: %s", units.Percent(variation), cause,
		advice)
}

// cause names the phase that makes the steps uneven, and suggests a fix.
func (p *Pace) cause(s pipeline.Stats) (phase, advice string) {
	switch part := p.since.uneven(); part {
	case "wait":
		limit := limits(s, p.Setup)
		limit.Steps = math.MaxInt64 // enough to fill the ring
		return limit.Limit, "batches come late. " + strings.Join(bottleneck.Texts(bottleneck.Waiting(&limit)), " ")
	case "other":
		return part, "the time between the steps. " + bottleneck.Between
	default:
		if p.Setup.OnCPU {
			return part, fmt.Sprintf(
				"something else uses the cores. Give training fewer with --threads%s, or stop other programs.",
				bottleneck.Now(p.Setup.Threads))
		}
		return part, "something else uses the device. Stop other programs on it."
	}
}

// between returns the phase times of the pipeline between two moments.
func between(from, to pipeline.Stats) pipeline.Stats {
	d := pipeline.Stats{Phases: make([]pipeline.Phase, len(to.Phases))}
	copy(d.Phases, to.Phases)
	for i := range from.Phases {
		d.Phases[i].Busy -= from.Phases[i].Busy
		d.Phases[i].Queue -= from.Phases[i].Queue
	}
	return d
}
