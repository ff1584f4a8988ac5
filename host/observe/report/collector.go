package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/host/base/stat"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// warmSteps is the largest number of steps with which the first one counts in the step times: a run with so few steps
// needs it.
const warmSteps = 10

// recentSteps is the number of last training steps whose metrics are compared with the baselines.
const recentSteps = 20

// Collector is the event.Sink that collects the figures of a run. It is a required sink.
type Collector struct {
	metrics []string
	history History
	recent  [][]float64 // of each metric, the values of the last steps that were not skipped
	kept    []Baseline  // of the report before the run was resumed

	resumedAt, last int64 // steps
	steptimes
	skipped int64 // of this process

	walltime   walltime
	evaluation *Evaluation
	unsaved    int // checkpoints for which the disk had no space
	adapted    adapted

	cpu                  func() cpuTimes // cpuTime, except in tests
	trainedCPU, endedCPU cpuTimes        // when training began and ended
}

// steptimes are the times of the steps of this process.
type steptimes struct {
	warm, process int64 // steps: those before the first whose time counts, and all so far
	windows       int64 // without the warm ones
	first         firstStep
	rest          totals
	byBucket      map[int]*stat.Sample
	order         stat.Blocks                 // of the steps in byBucket
	gradients     stat.Sample                 // of the steps in byBucket
	parts         [len(stepParts)]stat.Sample // likewise
}

// firstStep keeps the first step until it is known whether it counts.
type firstStep struct {
	totals
	bucket int
}

// totals are sums over steps.
type totals struct {
	event.Times
	frames int64
}

func (t *totals) add(o totals) {
	t.Times.Add(o.Times)
	t.frames += o.frames
}

// NewCollector returns a collector for steps with these metrics. before is what came before this process in a resumed
// run.
func NewCollector(metrics []string, before Before) *Collector {
	c := &Collector{
		metrics: metrics, history: before.Steps, evaluation: before.Evaluation, kept: before.Baselines,
		steptimes: steptimes{byBucket: map[int]*stat.Sample{}}, cpu: cpuTime,
	}
	c.last, c.resumedAt, c.warm = before.Steps.Steps, before.Steps.Steps, before.Warm
	c.recent = append(before.Recent, make([][]float64, len(metrics)-len(before.Recent))...)
	return c
}

// Take counts the steps, evaluations, times and unsaved checkpoints among events.
func (c *Collector) Take(events []event.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *event.Step:
			c.step(e)
		case *event.Evaluation:
			c.evaluated(e)
		case *event.Phase:
			c.walltime.phase(e)
			switch e.Phase {
			case event.Training:
				c.trainedCPU = c.cpu()
			case event.Ending:
				c.endedCPU = c.cpu()
			}
		case *event.Work:
			c.walltime.work(e)
		case *event.Adapted:
			c.adapted.add(e)
		case *event.Checkpoint:
			if e.Err != nil {
				c.unsaved++
			}
		}
	}
	return nil
}

// Close does nothing.
func (c *Collector) Close() error { return nil }

func (c *Collector) step(w *event.Step) {
	c.history.add(w.Loss, w.Skipped, int64(w.Samples()), int64(w.Frames))
	c.last = w.Step
	if c.process++; c.process == 1 {
		c.resumedAt = w.Step - 1
	}
	if c.process > c.warm {
		c.timed(w)
	}
	if w.Skipped {
		c.skipped++
		return
	}
	for i, v := range w.Metrics {
		c.recent[i] = appendRecent(c.recent[i], v)
	}
}

// Skipped returns how many steps were skipped, and of how many: of the whole run or, if those of this process are a
// larger share, of this process.
func (c *Collector) Skipped() (skipped, steps int64) {
	if c.skipped*c.history.Steps > c.history.Skipped*c.process {
		return c.skipped, c.process
	}
	return c.history.Skipped, c.history.Steps
}

// timed counts a step whose time counts.
func (c *Collector) timed(w *event.Step) {
	t := totals{w.Times, int64(w.Frames)}
	if c.windows++; c.windows == 1 {
		c.first = firstStep{t, w.Bucket}
		return
	}
	c.rest.add(t)
	c.time(w.Bucket).Add(millis(w.Time))
	c.order.Add(millis(w.Time))
	c.gradients.Add(millis(gradients(w.Times)))
	for i, d := range partsOf(&w.Times) {
		c.parts[i].Add(millis(d))
	}
}

// gradients returns the time of the forward and backward passes of a step.
func gradients(t event.Times) time.Duration {
	if t.GPUTrain > 0 {
		return t.GPUTrain
	}
	return t.Train
}

// appendRecent appends a value and keeps the last ones.
func appendRecent(values []float64, v float64) []float64 {
	if len(values) == recentSteps {
		copy(values, values[1:])
		values = values[:recentSteps-1]
	}
	return append(values, v)
}

func (c *Collector) time(bucket int) *stat.Sample {
	s := c.byBucket[bucket]
	if s == nil {
		s = new(stat.Sample)
		c.byBucket[bucket] = s
	}
	return s
}

// evaluated keeps the last evaluation.
func (c *Collector) evaluated(e *event.Evaluation) {
	v := &Evaluation{Step: e.Step, Loss: Float(e.Loss), Metrics: map[string]Float{}, Samples: e.Samples}
	for i, name := range c.metrics {
		v.Metrics[name] = Float(e.Metrics[i])
	}
	c.evaluation = v.after(c.evaluation)
}

// Transfers sums up the transfers of batches to the GPU, by the GPU's own clock. The zero value means that there was
// none, as on the CPU.
type Transfers struct {
	Batches int
	// Time is the time of the transfers, Hidden the part of it in which the GPU computed.
	Time, Hidden time.Duration
}

// Measured is what a run measures beside its events.
type Measured struct {
	Began     time.Time
	Wall      time.Duration
	Pipeline  pipeline.Stats
	Transfers Transfers
	Baselines []BaselineLosses
	Best      *Best            // the best evaluation of the whole run; nil means the best of this process
	Setup     bottleneck.Setup // the settings that the advice may name
	Diverged  bool             // the outcome says why the model is ruined
}

// Complete fills in a report what follows from events and measurements; what they do not say is in r already. The
// collector may continue afterwards.
func (c *Collector) Complete(r *Report, m Measured) {
	r.Version, r.ResumedAt, r.Loss, r.Evaluation = Version, c.resumedAt, c.losses(), c.lastEvaluation(m.Best)
	r.Steps, r.SkippedSteps, r.Samples, r.Frames = c.last, c.history.Skipped, c.history.Samples, c.history.Frames
	r.WallS, r.TimeS, r.UnsavedCheckpoints = m.Wall.Seconds(), c.walltime.since(m.Began, m.Wall), c.unsaved
	r.Baselines = c.baselines(m.Baselines, r.Evaluation)
	c.adapted.complete(r.Adaptive)
	r.withoutNull()
	r.countPlugins()
	c.speed(r)
	c.steps(r, m)
	r.TransferHiddenRatio = transferHidden(m)
	speed := speedOf(r, m.Pipeline, m.Setup)
	speed.Cores, speed.Others = c.cores(r)
	r.Verdict = judge(&speed, r.SkippedSteps, r.Steps)
	if m.Diverged { // how fast it was does not matter
		r.Verdict.Diverged, r.Verdict.Advice, r.Verdict.SecondGPU = true, []string{r.Outcome + "."}, nil
		return
	}
	if advice := r.spokenAdvice(); advice != "" {
		r.Verdict.Advice = append(r.Verdict.Advice, advice)
	}
}

// withoutNull makes empty lists of those that are missing: report.json has no null for a list.
func (r *Report) withoutNull() {
	r.Graphs, r.Memory, r.Utilization = listOf(r.Graphs), listOf(r.Memory), listOf(r.Utilization)
	r.Plugins, r.Warnings, r.UnknownCharacters = listOf(r.Plugins), listOf(r.Warnings), listOf(r.UnknownCharacters)
}

func listOf[T any](list []T) []T { return append([]T{}, list...) }

func (c *Collector) losses() Losses {
	if c.history.Steps == c.history.Skipped {
		none := Float(math.NaN())
		return Losses{none, none, none}
	}
	return Losses{Float(c.history.First), Float(c.history.Last), Float(c.history.Best)}
}

// Last returns the losses so far, and the last evaluation or nil.
func (c *Collector) Last() (Losses, *Evaluation) { return c.losses(), c.evaluation }

func (c *Collector) lastEvaluation(best *Best) *Evaluation {
	if c.evaluation == nil {
		return nil
	}
	e := *c.evaluation
	if best != nil {
		e.Best = *best
	}
	return &e
}

// speed fills in what is measured after the first step, or including it if there is no other step.
func (c *Collector) speed(r *Report) {
	steps, t := c.windows-1, c.rest
	if c.windows == 1 {
		steps, t = 1, c.first.totals
	}
	if t.Time <= 0 {
		return
	}
	r.StepsPerSecond = float64(steps) / t.Time.Seconds()
	r.FramesPerSecond = float64(t.frames) / t.Time.Seconds()
	r.InputStallRatio = ratio(c.rest.InputWait, c.rest.Time)
}

// steps fills in the times of steps and phases.
func (c *Collector) steps(r *Report, m Measured) {
	n, t := c.windows-1, c.rest
	var all stat.Sample
	passes, parts := c.gradients, c.parts
	r.StepMs.ByBucket = map[int]Distribution{}
	for _, bucket := range slices.Sorted(maps.Keys(c.byBucket)) {
		s := c.byBucket[bucket]
		r.StepMs.ByBucket[bucket] = distribution(s)
		all.Join(s)
	}
	switch {
	case c.windows > warmSteps:
		r.StepMs.FirstStepExcluded = true
	case c.windows > 0:
		n++
		t.add(c.first.totals)
		all.Add(millis(c.first.Time))
		passes.Add(millis(gradients(c.first.Times)))
		for i, d := range partsOf(&c.first.Times) {
			parts[i].Add(millis(d))
		}
		var bucket stat.Sample
		if s := c.byBucket[c.first.bucket]; s != nil {
			bucket = *s
		}
		bucket.Add(millis(c.first.Time))
		r.StepMs.ByBucket[c.first.bucket] = distribution(&bucket)
	}
	r.StepMs.Distribution, r.GradientsMs = distribution(&all), distribution(&passes)
	r.StepMs.Error = c.order.Error()
	r.PhaseTimes = []PhaseTime{}
	for i := range m.Pipeline.Times {
		r.PhaseTimes = append(r.PhaseTimes, PhaseTime{m.Pipeline.Phases[i].Name, distribution(&m.Pipeline.Times[i])})
	}
	for i := range parts {
		r.PhaseTimes = append(r.PhaseTimes, PhaseTime{stepParts[i], distribution(&parts[i])})
	}

	phase := func(name string, sum time.Duration, n int64) {
		r.PhasesMs = append(r.PhasesMs, Phase{name, millis(sum) / float64(max(1, n))})
	}
	for _, p := range m.Pipeline.Phases {
		phase(p.Name, p.Busy, int64(m.Pipeline.Batches))
	}
	phase("wait", t.InputWait, n)
	phase("train", t.Train, n)
	phase("optimizer", t.Optimize, n)
	phase("other", t.Other(), n)
	if t.GPUTrain > 0 {
		phase("gpu_train", t.GPUTrain, n)
		phase("gpu_optimizer", t.GPUOptimize, n)
	}
	if m.Transfers.Batches > 0 {
		phase("gpu_transfer", m.Transfers.Time, int64(m.Transfers.Batches))
	}
}

// transferHidden returns the share of the transfer time in which the GPU computed. Without measurements of the GPU, it
// returns the share in which the trainer did not wait for transfers.
func transferHidden(m Measured) float64 {
	if t := m.Transfers; t.Time > 0 {
		return ratio(t.Hidden, t.Time)
	}
	s := m.Pipeline
	for _, p := range s.Phases {
		if p.Name == "transfer" && p.Busy > 0 {
			return 1 - ratio(s.Exposed, p.Busy)
		}
	}
	return 1
}
