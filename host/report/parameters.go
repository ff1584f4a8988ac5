package report

// Parameters describes the parameters that a run trains, and their memory. Sizes are in bytes, including alignment.
type Parameters struct {
	Trained Tensors `json:"trained"`
	Frozen  Tensors `json:"frozen"`
	// WeightsBytes counts trained and frozen parameters; the others count trained parameters only.
	WeightsBytes     int `json:"weights_bytes"`
	CopiesBytes      int `json:"copies_bytes"`
	GradientsBytes   int `json:"gradients_bytes"`
	MomentsBytes     int `json:"moments_bytes"`
	AccumulatorBytes int `json:"accumulator_bytes"`
	AverageBytes     int `json:"average_bytes,omitempty"` // absent without --ema
	StateBytes       int `json:"state_bytes,omitempty"`   // absent without state
	// Groups are trained parameters with their own learning rate or weight decay.
	Groups []ParameterGroup `json:"groups,omitempty"`
}

// ParameterGroup describes parameters with their own learning rate or weight decay. Absent values are the run's.
type ParameterGroup struct {
	Tensors
	LRFactor    *float64 `json:"lr_factor,omitempty"`
	WeightDecay *float64 `json:"weight_decay,omitempty"`
}

// Tensors counts tensors and their values.
type Tensors struct {
	Tensors int `json:"tensors"`
	Values  int `json:"values"`
}
