package manifest

// State is one tensor of the model that training changes without a gradient, such as a running mean. It is f32.
type State struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// Elements returns the number of values of the tensor.
func (s State) Elements() int { return Parameter{Shape: s.Shape}.Elements() }
