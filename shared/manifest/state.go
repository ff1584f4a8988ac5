package manifest

// State is one tensor of the model that training changes without a gradient, such as a running mean. It is f32.
type State struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	// Player names the player whose training changes it; empty in a bundle without players.
	Player string `json:"player,omitempty"`
}

// StateOf returns the state that the training of a player changes, in the order of the bundle's list.
func (b *Bundle) StateOf(player string) (own []State) {
	for _, s := range b.State {
		if s.Player == player {
			own = append(own, s)
		}
	}
	return own
}

// Elements returns the number of values of the tensor.
func (s State) Elements() int { return Parameter{Shape: s.Shape}.Elements() }
