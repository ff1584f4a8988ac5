package session

import (
	"log/slog"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// costs returns what predicts a step of a player's training graph, or false if there are no figures of the GPU.
func (s *Session) costs(player string) (settings cost.Settings, known bool) {
	for i := range s.plan.Players {
		if p := &s.plan.Players[i]; p.Name == player {
			settings = train.CostsOf(s.plan.Bundle.Manifest, player, p.Arena, p.Optimizer)
		}
	}
	settings.Card, known = cost.CardOf(s.plan.Placement.Model.GPU.Name)
	settings.TF32 = s.plan.Precision.TF32
	return settings, known
}

// warnOfCost warns of a graph of which much takes more than twice its floor.
func (g *fusedGraph) warnOfCost(log *slog.Logger) {
	if g.facts.Predicted == nil {
		return
	}
	if text := report.SlowStep(g.facts.Predicted); text != "" {
		log.Warn("the fused graph" + g.of + " is slow: " + text + ". " +
			hint.Command("graph inspect BUNDLE --fused") + " lists all")
	}
}
