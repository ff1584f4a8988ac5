package report

// OfPlayer writes " of NAME" for texts about a player, and nothing for the only one, which has no name.
func OfPlayer(player string) string {
	if player == "" {
		return ""
	}
	return " of " + player
}

// Of names a graph in a message, after the word graph; it is empty for the only training graph.
func (g *Graph) Of() string {
	if g.Use == Evaluating {
		return " of evaluation"
	}
	return OfPlayer(g.Player)
}
