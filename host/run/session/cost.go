package session

import (
	"log/slog"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// costs returns what predicts a step of a player's training graph, or false if there are no figures of the GPU.
func (s *Session) costs(player string) (settings cost.Settings, known bool) {
	settings.Card, known = cost.CardOf(s.plan.Placement.Model.GPU.Name)
	settings.TF32 = s.plan.Precision.TF32
	_, settings.BF16 = s.plan.Bundle.Manifest.TrainingGraph(player, manifest.BF16)
	for i := range s.plan.Players {
		if p := &s.plan.Players[i]; p.Name == player {
			settings.UpdateBytes = p.Arena.Memory(p.Optimizer, false, false).UpdateBytes()
		}
	}
	return settings, known
}

// warnOfCost warns of a graph of which much takes more than twice its floor.
func (g *fusedGraph) warnOfCost(log *slog.Logger) {
	if g.facts.Predicted == nil {
		return
	}
	if text := report.SlowStep(g.facts.Predicted); text != "" {
		log.Warn("the fused graph" + report.OfPlayer(g.player) + " is slow: " + text + ". " +
			hint.Command("graph inspect BUNDLE --fused") + " lists all")
	}
}
