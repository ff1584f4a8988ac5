package report

// Parameters describes the parameters that a run trains, and their memory. Sizes are in bytes, including alignment.
type Parameters struct {
	Player  string  `json:"player,omitempty"` // of one of several
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
	// Players are the parameters of each of several players, which have the groups, too.
	Players []Parameters `json:"players,omitempty"`
}

// Add counts the parameters of a player. One without a name is the only one.
func (p *Parameters) Add(own Parameters) {
	if own.Player == "" {
		*p = own
		return
	}
	p.Players = append(p.Players, own)
	p.Trained.add(own.Trained)
	p.Frozen.add(own.Frozen)
	p.WeightsBytes += own.WeightsBytes
	p.CopiesBytes += own.CopiesBytes
	p.GradientsBytes += own.GradientsBytes
	p.MomentsBytes += own.MomentsBytes
	p.AccumulatorBytes += own.AccumulatorBytes
	p.AverageBytes += own.AverageBytes
	p.StateBytes += own.StateBytes
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

func (t *Tensors) add(o Tensors) {
	t.Tensors += o.Tensors
	t.Values += o.Values
}
