package manifest

import (
	"cmp"
	"fmt"
	"slices"
)

// Player is one of several that train in turn on each batch, with its own training graph, parameters and optimizer
// (docs/players.md).
type Player struct {
	Name      string    `json:"name"`
	Optimizer Optimizer `json:"optimizer"`
	// Schedule is nil for that of the bundle.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// InTurn returns the players in the order in which they train on a batch, each with its schedule. A bundle without
// players has one, whose name is empty.
func (b *Bundle) InTurn() []Player {
	if len(b.Players) == 0 {
		return []Player{{Optimizer: b.Optimizer, Schedule: &b.Schedule}}
	}
	all := slices.Clone(b.Players)
	for i := range all {
		all[i].Schedule = cmp.Or(all[i].Schedule, &b.Schedule)
	}
	return all
}

// Last returns the player that trains last. Its loss is that of the model.
func (b *Bundle) Last() Player {
	all := b.InTurn()
	return all[len(all)-1]
}

// ParametersOf returns the parameters of a player, in the order of the bundle's list.
func (b *Bundle) ParametersOf(player string) (own []Parameter) {
	for _, p := range b.Parameters {
		if p.Player == player {
			own = append(own, p)
		}
	}
	return own
}

// checkPlayers checks the optimizers, and that parameters, training graphs and metrics belong to players that there
// are.
func (b *Bundle) checkPlayers() error {
	if len(b.Players) == 0 {
		if err := b.Optimizer.check(b.Parameters); err != nil {
			return fmt.Errorf("optimizer: %w", err)
		}
	}
	known := map[string]bool{}
	for i, p := range b.Players {
		if known[p.Name] {
			return fmt.Errorf("players: two are named %q", p.Name)
		}
		known[p.Name] = true
		own := b.ParametersOf(p.Name)
		if !slices.ContainsFunc(own, func(q Parameter) bool { return !q.Frozen }) {
			return fmt.Errorf("players[%d]: %q has no parameter that is trained", i, p.Name)
		}
		if err := p.Optimizer.check(own); err != nil {
			return fmt.Errorf("players[%d]: optimizer: %w", i, err)
		}
	}
	belongs := func(what, player string) error {
		switch {
		case len(b.Players) == 0 && player != "":
			return fmt.Errorf("%s belongs to the player %q, but there is no list of players", what, player)
		case len(b.Players) > 0 && player == "":
			return fmt.Errorf("%s belongs to no player", what)
		case len(b.Players) > 0 && !known[player]:
			return fmt.Errorf("%s belongs to %q, which is not in players", what, player)
		}
		return nil
	}
	for i, p := range b.Parameters {
		if err := belongs(fmt.Sprintf("parameters[%d] %q", i, p.Name), p.Player); err != nil {
			return err
		}
	}
	for i, s := range b.State {
		if err := belongs(fmt.Sprintf("state[%d] %q", i, s.Name), s.Player); err != nil {
			return err
		}
	}
	for i, g := range b.Graphs {
		if g.Kind != "train" { // the schema allows it no player
			continue
		}
		if err := belongs(fmt.Sprintf("graphs[%d] %s", i, g.File), g.Player); err != nil {
			return err
		}
	}
	for i, t := range b.Outputs {
		if !t.IsMetric() {
			if t.Player != "" {
				return fmt.Errorf("outputs[%d]: %s is an output of every player", i, t.Name)
			}
			continue
		}
		if err := belongs(fmt.Sprintf("outputs[%d] %s", i, t.Name), t.Player); err != nil {
			return err
		}
	}
	return nil
}
