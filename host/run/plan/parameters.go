package plan

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/selection"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// layOutParameters decides which parameters are trained, how, and their layout in memory.
func (d *Draft) layOutParameters() error {
	b, c := d.Bundle.Manifest, d.Config
	frozen, err := selection.Frozen(b.Parameters, selection.Patterns{Freeze: c.Freeze, TrainOnly: c.TrainOnly})
	if err != nil {
		return err
	}
	d.Frozen, d.Players = selection.FrozenIdentity(frozen, len(b.Parameters)), nil
	for _, p := range b.InTurn() {
		player := Player{Name: p.Name, Optimizer: settings(p.Optimizer, b.Last().Optimizer, c), Schedule: scheduleOf(
			*p.Schedule, *b.Last().Schedule, c)}
		player.Optimizer.Groups, err = selection.Groups(b.ParametersOf(p.Name), selection.Settings{
			Bundle: p.Optimizer.Groups, LRFactor: c.LRFactor, WeightDecay: c.WeightDecayOf, Known: b.Parameters,
		})
		if err != nil {
			return err
		}
		policy := d.Bundle.Policy(d.Precision.Graph)
		policy.Frozen, policy.Groups = frozen, selection.GroupIndex(player.Optimizer.Groups)
		player.Arena = ortgraphs.NewArena(b.ParametersOf(p.Name), policy)
		if player.Arena.Trained().Len() == 0 {
			return hint.Errorf("leave it a parameter to train",
				"--freeze and --train-only freeze all parameters of the player %s", p.Name)
		}
		d.Players = append(d.Players, player)
	}
	return nil
}

// settings returns the optimizer of a player with the settings of a run, whose defaults are those of the last player.
// The learning rates of the players keep their ratio. A weight decay or clipping other than the last player's in the
// bundle is that of all.
func settings(own, last manifest.Optimizer, c *config.Config) manifest.Optimizer {
	switch {
	case own.LR == last.LR:
		own.LR = c.LR
	case c.LR != last.LR && last.LR > 0:
		own.LR *= c.LR / last.LR
	}
	if own.WeightDecay == last.WeightDecay || c.WeightDecay != last.WeightDecay {
		own.WeightDecay = c.WeightDecay
	}
	if own.GradClip == last.GradClip || c.GradClip != last.GradClip {
		own.GradClip = c.GradClip
	}
	return own
}

// scheduleOf returns the schedule of a player with the settings of a run, whose defaults are those of the last player.
// Others are those of all.
func scheduleOf(own, last manifest.Schedule, c *config.Config) manifest.Schedule {
	if c.Schedule != last.Name {
		own.Name = c.Schedule
	}
	if c.WarmupSteps != int64(last.WarmupSteps) {
		own.WarmupSteps = int(c.WarmupSteps)
	}
	return own
}

// Arenas returns the layouts of the players' parameters.
func (t *Training) Arenas() (all []*ortgraphs.Arena) {
	for _, p := range t.Players {
		all = append(all, p.Arena)
	}
	return all
}

// Accumulates reports whether gradients are summed up over micro-batches before an update.
func (p *Plan) Accumulates() bool { return p.Config.Accumulate > 1 }

// Memory returns the memory of weights, gradients and optimizers.
func (p *Plan) Memory() (m ortgraphs.Memory) {
	for i := range p.Players {
		m.Add(p.Players[i].memory(p))
	}
	return m
}

// memory is Plan.Memory for one of the players.
func (p *Player) memory(of *Plan) ortgraphs.Memory {
	m := p.Arena.Memory(p.Optimizer, of.Accumulates(), of.Config.EMA > 0)
	m.State = ortgraphs.StateBytes(of.Bundle.Manifest.StateOf(p.Name), of.World.Alone())
	return m
}

// Parameters describes the trained parameters for the report.
func (p *Plan) Parameters() (all report.Parameters) {
	for i := range p.Players {
		player := &p.Players[i]
		m := player.memory(p)
		own := report.Parameters{
			Player: player.Name, WeightsBytes: m.Weights, CopiesBytes: m.Copies, GradientsBytes: m.Gradients,
			MomentsBytes: m.Moments, AccumulatorBytes: m.Accumulator, AverageBytes: m.Average, StateBytes: m.State,
		}
		player.count(&own)
		all.Add(own)
	}
	return all
}

// count counts the player's parameters and groups.
func (p *Player) count(out *report.Parameters) {
	for _, g := range p.Optimizer.Groups {
		out.Groups = append(out.Groups, report.ParameterGroup{LRFactor: g.LRFactor, WeightDecay: g.WeightDecay})
	}
	for i, q := range p.Arena.Parameters() {
		count := &out.Frozen
		if p.Arena.Role(i).Trained {
			count = &out.Trained
		}
		count.Tensors++
		count.Values += q.Elements()
		if group := p.Arena.Role(i).Group; group > 0 {
			g := &out.Groups[group-1]
			g.Tensors.Tensors++
			g.Values += q.Elements()
		}
	}
	// frozen
	out.Groups = slices.DeleteFunc(out.Groups, func(g report.ParameterGroup) bool { return g.Tensors.Tensors == 0 })
}

// moments names the tensors of the optimizers' state.
func (t *Training) moments() (names []string) {
	for _, player := range t.Players {
		for i, p := range player.Arena.Parameters() {
			if player.Arena.Role(i).Trained {
				for _, s := range ortgraphs.UpdateOf(player.Optimizer, p).State {
					names = append(names, checkpoint.Moment(s.Name, p.Name))
				}
			}
		}
	}
	return names
}
