package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Source is the sequence of batches of the whole run, begun where the run starts.
func (p *Plan) Source() *batch.Source {
	c := p.Config
	s := &batch.Source{
		Train: p.Data.Train.Plan, Accumulate: c.Accumulate, EvalEvery: c.EvalEvery, Epochs: c.Epochs,
		MaxSteps: c.MaxSteps, Seed: c.Seed, World: p.World,
	}
	if p.Data.Val != nil {
		s.Val = p.Data.Val.Plan
	}
	s.Start(p.Progress().Position())
	return s
}

// Schedules returns the learning rate schedules of the players. A resumed run takes the parts that are fixed at the
// start of a run from its checkpoint.
func (p *Plan) Schedules() (all []schedule.Schedule) {
	steps := p.Source().Total()
	for _, player := range p.Players {
		s := player.schedule(p.Config, steps)
		if p.Start.Resumed != nil {
			saved, _ := p.Start.Resumed.State.ScheduleOf(player.Name)
			s = s.Continue(saved)
		}
		all = append(all, s)
	}
	return all
}

// EndsEarly returns a line for each of the players' schedules that ends before the last step of a run.
func EndsEarly(players []Player, all []schedule.Schedule, last int64) (lines []string) {
	for i, s := range all {
		if s.Ends() && last > s.End() {
			why := "the length of the run when it began"
			if s.End() > s.TotalSteps {
				why = "with the warm-up, which is longer than the run was when it began"
			}
			lines = append(lines, fmt.Sprintf("the %s schedule%s ends at step %d, %s: the learning rate is %g from "+
				"there to step %d (--allow schedule stretches it)",
				s.Name, report.OfPlayer(players[i].Name), s.End(), why, s.MinLR, last))
		}
	}
	return lines
}

// schedule returns the player's schedule in a run of so many steps. Its minimum has the same ratio to --min-lr as its
// rate to --lr.
func (p *Player) schedule(c *config.Config, steps int64) schedule.Schedule {
	warmup := int64(p.Schedule.WarmupSteps)
	s := schedule.Schedule{
		Name: p.Schedule.Name, BaseLR: p.Optimizer.LR, WarmupSteps: warmup, DecayStart: warmup, TotalSteps: steps,
	}
	if c.MinLR > 0 {
		s.MinLR = c.MinLR * (p.Optimizer.LR / c.LR)
	}
	switch s.Name {
	case schedule.Exponential:
		s.Factor = c.LRDecay
	case schedule.Plateau:
		s.Factor, s.Patience = c.PlateauFactor, c.PlateauPatience
	}
	return s
}

// EarlyStop returns the condition for an early end of the run: a validation loss that does not fall.
func (p *Plan) EarlyStop() schedule.EarlyStop {
	return schedule.EarlyStop{Evaluations: p.Config.EarlyStop, Delta: p.Config.EarlyStopDelta}
}

// checkAverage refuses to continue a moving average with another decay. A run without an average may get one.
func (d *Draft) checkAverage(saved *checkpoint.State) error {
	if e := saved.EMA; e != nil && e.Decay != d.Config.EMA {
		return hint.Errorf(
			fmt.Sprintf("resume with --ema %g, or start a new run from its weights with --init", e.Decay),
			"--ema was %g, is %g: the moving average of the weights cannot be continued", e.Decay, d.Config.EMA)
	}
	return nil
}

// CheckLearning refuses invalid learning rates, and schedules that need a validation loss in a run without one.
func (d *Draft) CheckLearning(context.Context) error {
	c := d.Config
	if c.LR < 0 || !slices.ContainsFunc(d.Players, func(p Player) bool { return p.Optimizer.LR > 0 }) {
		return hint.Errorf("leave --lr out for the learning rate of the bundle",
			"--lr %g: a model learns with a rate above 0 only", c.LR)
	}
	if c.MinLR > c.LR {
		return hint.Errorf("lower --min-lr, or raise --lr", "--min-lr %g is above the learning rate of %g", c.MinLR,
			c.LR)
	}
	if d.Data.Val != nil {
		return nil
	}
	const advice = "name validation data with --val-data, or add metadata_eval.csv to the training data"
	for _, p := range d.Players {
		if p.Schedule.Name == schedule.Plateau {
			return hint.Errorf(advice, "the schedule plateau%s lowers the learning rate by the validation loss, and "+
				"there is no validation data",
				report.OfPlayer(p.Name))
		}
	}
	if c.EarlyStop > 0 {
		return hint.Errorf(advice, "--early-stop %d watches the validation loss, and there is no validation data",
			c.EarlyStop)
	}
	return nil
}
