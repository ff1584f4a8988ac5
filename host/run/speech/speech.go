// Package speech has a run speak at its evaluations, and says when its speech breaks.
package speech

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/run/together"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/samples"
)

// Config configures a Speech.
type Config struct {
	Plan    *plan.Plan
	Session *session.Session
	Loop    *loop.Loop
	Dir     string // the run folder
	Silent  bool   // a run that measures, and speaks nothing
	// Evaluations are those of a resumed run.
	Evaluations *report.Evaluations
	Ranks       *together.Ranks // share out what is spoken
	Stop        <-chan struct{}
	Bus         *event.Bus
	Log         *slog.Logger
}

// Speech is what a run speaks. A nil Speech has nothing to say.
type Speech struct {
	speaker *samples.Speaker // nil without
	bus     *event.Bus
	log     *slog.Logger
	lowest  float64 // loss of an evaluation; NaN before the first
	by      judged
	spoken  *event.Spoken // at the evaluation at hand, if it was spoken to be judged
	pace    pace
	ranks   samples.Ranks
	leads   bool // which says what was spoken
	// final reports whether no evaluation follows one. It is asked between steps.
	final func(step int64) bool
}

// Open opens what speaks at the evaluations.
func Open(ctx context.Context, c Config) (_ *Speech, err error) {
	p, s := &c.Loop.Train.Progress, c.Session
	speaking := samples.Config{
		Bundle: c.Plan.Bundle, Weights: &s.Model.Evaluated, Tensors: s.Model.Evaluated.Tensors, Device: s.Device,
		MemoryLimit: s.Memory.Left(), Check: s.Memory.CheckSamples, Threads: c.Plan.ThreadsBeside(),
		Run: c.Dir, Step: p.Step, EvaluatedStep: p.EvaluatedStep, Stop: c.Stop, Log: c.Log, Bus: c.Bus,
	}
	out := &Speech{
		bus: c.Bus, log: c.Log, lowest: math.NaN(), by: newJudged(c.Plan), leads: c.Ranks.Leads(), final: finalOf(c),
	}
	if c.Ranks != nil {
		out.ranks, speaking.Ranks = c.Ranks, c.Ranks
	}
	if !out.leads { // what stops rank 0 stops the speech of all
		speaking.Run, speaking.Stop = rundir.RunOfRank(c.Dir), c.Ranks.Lost()
	}
	speaking.Spent = func(began, ended time.Time) {
		c.Loop.Timeline.Trained("samples", nil, began, ended)
		out.pace.spoke(ended.Sub(began))
	}
	if !c.Silent {
		speaking.List = c.Plan.Samples
	}
	out.pace.unasked = speaking.Optional && len(speaking.Sentences) == 0 &&
		c.Plan.Config.SpokenClips == config.DefaultSpokenClips // a resumed run has what its folder says
	if speaking.Recognizer, err = samples.NewRecognizer(c.Plan.Config.Recognizer); err != nil {
		return nil, err
	}
	if last := c.Evaluations.Last(); last != nil {
		out.lowest = float64(last.Best.Loss)
	}
	if out.speaker, err = samples.Open(ctx, speaking); err == nil {
		err = out.judge(c.Loop.Train, c.Evaluations)
	}
	return out, err
}

// finalOf reports whether a step is the last one of the run, or early stop ends it there.
func finalOf(c Config) func(step int64) bool {
	last, l := c.Plan.Source().Total(), c.Loop.Train
	return func(step int64) bool {
		return step >= last || l.Policy.EarlyStop.Over(l.Progress.EarlyStop)
	}
}

// Step counts the time of a step.
func (s *Speech) Step(took time.Duration) {
	if s != nil {
		s.pace.trained += took
	}
}

// due reports whether an evaluation is spoken. Rank 0 decides it by its clock.
func (s *Speech) due(step int64) bool {
	due, err := samples.FromLead(s.ranks, s.leads && s.paced(step))
	return due && err == nil
}

// paced is due on rank 0. It says once that some evaluations are not spoken.
func (s *Speech) paced(step int64) bool {
	if !s.pace.unasked || s.pace.due(s.final(step)) {
		return true
	}
	if s.pace.skipped == 1 {
		s.bus.Publish(&event.Message{Text: fmt.Sprintf("this evaluation speaks no clips, because speaking would "+
			"take more than %d %% of the training time; the last one will; --spoken-clips %d speaks at each one\n",
			100/share, config.DefaultSpokenClips)})
		s.log.Info("evaluations are not spoken", "step", step, "speaking_s", s.pace.spoken.Seconds(),
			"training_s", s.pace.trained.Seconds())
	}
	return false
}

// Evaluated speaks with the weights of an evaluation, and warns if speech breaks although the loss is the lowest so
// far.
func (s *Speech) Evaluated(e *event.Evaluation) {
	lowest := !(s.lowest <= e.Loss) // also the first
	if lowest {
		s.lowest = e.Loss
	}
	spoken := s.spoken
	if s.spoken = nil; spoken == nil || spoken.Step != e.Step {
		if s.speaker == nil || !s.due(e.Step) {
			return
		}
		spoken = s.speaker.Speak(e.Step)
	}
	if spoken == nil || !s.leads {
		return
	}
	s.bus.Publish(spoken)
	if broken := s.speaker.Broken(); lowest && broken != "" {
		s.log.Warn("speech breaks although the loss is the lowest so far: "+broken, "step", e.Step)
	}
}

// Report describes what was spoken; nil without, and on other ranks than the first.
func (s *Speech) Report() *report.Spoken {
	if s == nil || !s.leads {
		return nil
	}
	r := s.speaker.Report()
	if r != nil {
		r.Skipped = s.pace.skipped
	}
	return r
}

// Close releases the graphs. It is idempotent.
func (s *Speech) Close() error {
	if s == nil {
		return nil
	}
	return s.speaker.Close()
}
