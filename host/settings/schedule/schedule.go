// Package schedule computes the learning rate of every step: a linear warm-up, then one of five curves.
//
//	s := schedule.Schedule{Name: schedule.Cosine, BaseLR: 1e-3, WarmupSteps: 100, DecayStart: 100, TotalSteps: 5000}
//	s.LR(99, 0) // 1e-3: the peak, and the last step of the warm-up
//
// docs/schedules.md has the formulas and their picture.
package schedule

import (
	"fmt"
	"math"
)

// The courses of the learning rate after the warm-up.
const (
	Constant    = "constant"
	Cosine      = "cosine"
	Linear      = "linear"
	Exponential = "exponential"
	Plateau     = "plateau"
)

// Names lists the courses in the order of the help.
func Names() []string { return []string{Constant, Cosine, Linear, Exponential, Plateau} }

// Schedule gives the learning rate of every step. It is fixed when a run begins: checkpoints have it in state.json.
type Schedule struct {
	Name   string  `json:"name"`
	BaseLR float64 `json:"base_lr"`
	// MinLR is the minimum after the warm-up.
	MinLR       float64 `json:"min_lr,omitempty"`
	WarmupSteps int64   `json:"warmup_steps"`
	// DecayStart is the step at which cosine, linear and exponential begin to fall: the end of the warm-up. It is 0 in
	// checkpoints of versions whose cosine fell from the first step on, also through the warm-up.
	DecayStart int64 `json:"decay_start,omitempty"`
	// TotalSteps is the length that the run had when it began, where cosine and linear reach MinLR.
	TotalSteps int64 `json:"total_steps"`
	// Factor multiplies the rate: with Exponential in every step, with Plateau after Patience evaluations in a row
	// without a lower loss.
	Factor   float64 `json:"factor,omitempty"`
	Patience int     `json:"patience,omitempty"`
}

// LR returns the learning rate of step s, counted from 0. reductions is State.Reductions, which only Plateau looks at.
func (c Schedule) LR(s int64, reductions int) float64 {
	rate := c.BaseLR
	if s+1 < c.WarmupSteps {
		rate *= float64(s+1) / float64(c.WarmupSteps)
	}
	switch c.Name {
	case Cosine:
		return c.fall(rate, s, (1+math.Cos(math.Pi*c.progress(s)))/2)
	case Linear:
		return c.fall(rate, s, 1-c.progress(s))
	case Exponential:
		return c.fall(rate, s, math.Pow(c.Factor, float64(s-c.DecayStart)))
	case Plateau:
		if reductions > 0 {
			return max(c.MinLR, rate*math.Pow(c.Factor, float64(reductions)))
		}
	}
	return rate
}

// fall reduces a rate to a share of its distance from the minimum, from DecayStart on.
func (c Schedule) fall(rate float64, s int64, share float64) float64 {
	if s < c.DecayStart {
		return rate
	}
	return c.MinLR + (rate-c.MinLR)*share
}

// progress returns the position of a step between DecayStart and TotalSteps, from 0 to 1.
func (c Schedule) progress(s int64) float64 {
	switch {
	case c.TotalSteps == 0: // no end
		return 0
	case c.TotalSteps <= c.DecayStart: // the run ended in the warm-up, and continues
		return 1
	}
	return min(1, float64(s-c.DecayStart)/float64(c.TotalSteps-c.DecayStart))
}

// Ends reports whether the course depends on the length of the run.
func (c Schedule) Ends() bool { return c.Name == Cosine || c.Name == Linear }

// Continue returns the schedule of a run that continues from saved. It keeps the values that are fixed at the start of
// a run, unless another course is requested.
func (c Schedule) Continue(saved Schedule) Schedule {
	if saved.Name == c.Name && saved.WarmupSteps == c.WarmupSteps {
		c.TotalSteps, c.DecayStart = saved.TotalSteps, saved.DecayStart
	}
	return c
}

// End is the step from which on cosine and linear stay at MinLR: the length that the run had when it began, or the end
// of the warm-up if that comes later.
func (c Schedule) End() int64 { return max(c.TotalSteps, c.DecayStart) }

// Until describes the course in a run of so many steps, 0 for no limit: "cosine to 0 at step 5000 after 20 steps of
// warm-up". The run may be longer than it was when it began.
func (c Schedule) Until(last int64) string {
	text := c.Name
	if c.Ends() && last > 0 && last <= c.DecayStart {
		return fmt.Sprintf("%s, not begun: the warm-up lasts until step %d", c.Name, c.DecayStart)
	}
	switch c.Name {
	case Cosine, Linear:
		text += fmt.Sprintf(" to %g at step %d", c.MinLR, c.End())
	case Exponential:
		text += fmt.Sprintf(", times %g a step", c.Factor)
	case Plateau:
		evaluations := "evaluations"
		if c.Patience == 1 {
			evaluations = "evaluation"
		}
		text += fmt.Sprintf(", times %g after %d %s without a lower loss", c.Factor, c.Patience, evaluations)
	}
	if c.MinLR > 0 && (c.Name == Exponential || c.Name == Plateau) {
		text += fmt.Sprintf(", at least %g", c.MinLR)
	}
	switch {
	case c.WarmupSteps == 1:
		text += " after 1 step of warm-up"
	case c.WarmupSteps > 1:
		text += fmt.Sprintf(" after %d steps of warm-up", c.WarmupSteps)
	}
	return text
}
