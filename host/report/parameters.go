package report

// Parameters says what a run trains, and what that takes. Sizes are in bytes, with what alignment adds.
type Parameters struct {
	Trained Tensors `json:"trained"`
	Frozen  Tensors `json:"frozen"`
	// WeightsBytes are those of trained and frozen parameters; all others are of the trained ones.
	WeightsBytes     int `json:"weights_bytes"`
	CopiesBytes      int `json:"copies_bytes"`
	GradientsBytes   int `json:"gradients_bytes"`
	MomentsBytes     int `json:"moments_bytes"`
	AccumulatorBytes int `json:"accumulator_bytes"`
}

// Tensors counts tensors and their values.
type Tensors struct {
	Tensors int `json:"tensors"`
	Values  int `json:"values"`
}
