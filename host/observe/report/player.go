package report

// OfPlayer writes " of NAME" for texts about a player, and nothing for the only one, which has no name.
func OfPlayer(player string) string {
	if player == "" {
		return ""
	}
	return " of " + player
}
