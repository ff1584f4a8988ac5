package report

import "github.com/xtts-host/xtts-host/host/base/stat"

// Distribution describes the times of steps, or of the batches of a phase, in milliseconds.
type Distribution struct {
	Steps int64   `json:"steps"`
	Mean  float64 `json:"mean"`
	// Std is the standard deviation of these steps (over n, not n-1).
	Std float64 `json:"std"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// P50 and P99 are the smallest times that half and 99 % of the steps do not exceed, within 0.5 %.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Variation is Std / Mean.
	Variation float64 `json:"variation"`
	// Error is the standard error of Mean by blocks of steps in a row (stat.Blocks); 0 where their order is not known.
	Error float64 `json:"error,omitempty"`
}

// DistributionOf describes these times, which are in the order in which they were measured.
func DistributionOf(ms []float64) Distribution {
	var s stat.Sample
	var order stat.Blocks
	for _, v := range ms {
		s.Add(v)
		order.Add(v)
	}
	d := distribution(&s)
	d.Error = order.Error()
	return d
}

// distribution describes times in ms.
func distribution(s *stat.Sample) Distribution {
	if s.N == 0 {
		return Distribution{}
	}
	d := Distribution{
		Steps: s.N, Mean: s.Mean, Std: s.Std(), Min: s.Min, Max: s.Max, P50: s.Quantile(0.5), P99: s.Quantile(0.99),
	}
	if d.Mean > 0 {
		d.Variation = d.Std / d.Mean
	}
	return d
}

// PhaseTime describes the times of a phase.
type PhaseTime struct {
	Name string `json:"name"`
	Distribution
}
