package loop

import (
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/trace"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/summary"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
)

// Duties are what a run does at its batches, steps and evaluations, after their events are published. An error ends
// the run.
type Duties interface {
	// Batch is called for every training batch that was computed, while its slot is still held.
	Batch(d *pipeline.DeviceSlot)
	// Step and Evaluated are called between steps, when a checkpoint may be saved. best is the best evaluation of the
	// run, nil without one with a finite loss.
	Step(s *event.Step) error
	Evaluated(e *event.Evaluation, best *train.Best) error
}

// reporter publishes the events of the training loop, completed with what the loop does not know, and then tells next
// of them. It implements train.Observer.
type reporter struct {
	next     Duties
	plan     *plan.Plan
	ranks    *together.Ranks
	run      event.Start
	path     *batch.Path
	trained  *train.Loop
	timeline *trace.Timeline // nil without a trace
	bus      *event.Bus
	log      *slog.Logger
	debug    *debug.Folder
	pace     report.Pace

	frames     int   // of the step so far
	reductions []int // of the learning rates of the players that were reported
	batches    int   // of an evaluation
	evaluating *event.Job
}

// newReporter returns the reporter of a training loop.
func newReporter(c Config, l *Loop) *reporter {
	r := &reporter{
		next: c.Duties, plan: c.Plan, ranks: c.Ranks, run: c.Run, path: l.Path, trained: l.Train, timeline: l.Timeline,
		bus: c.Bus, log: c.Log, debug: c.Debug,
		pace:       report.Pace{Every: c.Run.Every, Setup: summary.Setup(c.Plan), Pipeline: l.Path.Pipeline},
		reductions: make([]int, len(c.Plan.Players)),
	}
	for i, plateau := range c.Progress.Plateaus {
		r.reductions[i] = plateau.Reductions
	}
	if val := c.Plan.Data.Val; val != nil {
		r.batches = c.Plan.World.Of(val.Plan.Batches())
	}
	return r
}

// Batch implements train.Observer.
func (r *reporter) Batch(d *pipeline.DeviceSlot) {
	r.frames += r.path.Frames(d)
	r.next.Batch(d)
}

// Step implements train.Observer.
func (r *reporter) Step(s *event.Step) error {
	defer r.timeline.Step()
	if r.plan.World.Alone() {
		s.Frames = r.frames
	}
	r.frames = 0
	r.complete(s)
	if err := r.bus.Publish(s); err != nil {
		return err
	}
	pace, warning := r.pace.Step(s)
	if pace != nil {
		r.bus.Publish(pace)
	}
	if warning != "" {
		r.log.Warn(warning, "step", s.Step)
	}
	if s.Skipped || r.run.Due(s.Step) {
		r.bus.Wake() // the user waits for the line
	}
	return r.next.Step(s)
}

// complete names the rows of a skipped step, those of all ranks, and what limits the run in one that waited long.
func (r *reporter) complete(s *event.Step) {
	s.Named, s.Ranks, s.Bottleneck = s.Named[:0], nil, ""
	if s.Skipped {
		for _, row := range s.Rows[:min(event.MaxNamed, len(s.Rows))] {
			s.Named = append(s.Named, r.plan.TrainingRow(row))
		}
		s.Ranks = r.ranks.Rows(s)
	}
	if report.Stalled(s.Times) {
		s.Bottleneck = r.path.Pipeline.Stats().Bottleneck()
	}
}

// Evaluating implements train.Observer.
func (r *reporter) Evaluating(began time.Time, done int) {
	if done == 0 {
		r.debug.Reach(debug.Point{Phase: "evaluation"})
		r.evaluating = r.bus.Begin(event.Work{Task: event.Evaluating, Unit: "batches", Of: r.batches, Began: began})
		return
	}
	r.evaluating.Do(done, r.batches)
	if done == r.batches {
		r.evaluating.End()
	}
}

// Evaluated implements train.Observer.
func (r *reporter) Evaluated(e *event.Evaluation) error {
	best := r.trained.Progress.Best
	e.Best = best != nil && best.Step == e.Step
	r.bus.Publish(e)
	r.lowered(e.Step)
	return r.next.Evaluated(e, best)
}

// lowered publishes that an evaluation has lowered the learning rates of players.
func (r *reporter) lowered(step int64) {
	for i, s := range r.trained.Policy.Schedules {
		now := r.trained.Progress.Plateaus[i].Reductions
		if now == r.reductions[i] {
			continue
		}
		r.reductions[i] = now
		r.bus.Publish(&event.Lowered{
			Step: step, Player: r.plan.Players[i].Name, LR: s.LR(max(step, s.WarmupSteps), now), Patience: s.Patience,
			By: r.plan.BestBy(),
		})
	}
}
