package event

// Probed is published when an evaluation has computed the probes that the run asks for.
type Probed struct {
	Step int64
	// Tensors are the probed tensors, gradients and parameters, sorted by name.
	Tensors []Probe
}

// Probe is what an evaluation tells of one tensor.
type Probe struct {
	// Name is that of the probe, or "gradient/NAME" and "parameter/NAME" for those of a parameter.
	Name  string
	Shape []int
	// Mean, Std, Min, Max and Norm (Euclidean) are of the finite values. NotFinite counts the others.
	Mean, Std, Min, Max, Norm float64
	NotFinite                 int
	// Counts are those of a histogram of the finite values: Counts[i] values are at least Edges[i] and below
	// Edges[i+1]; the last edge is included. There is one more edge than there are counts.
	Edges  []float64
	Counts []int
	// Picture is a path in the run folder, empty for a tensor that has none.
	Picture string
}
