package train

// mean is a weighted mean of the loss and the metrics of several batches of a player, or of an evaluation.
type mean struct {
	weight, loss float64
	metrics      []float64
}

func (m *mean) reset() { m.weight, m.loss, m.metrics = 0, 0, m.metrics[:0] }

// add adds one batch. A batch of empty rows has no weight, whatever its metrics are.
func (m *mean) add(r Result) {
	if len(m.metrics) == 0 {
		m.metrics = append(m.metrics, make([]float64, len(r.Metrics))...)
	}
	if r.Weight == 0 {
		return
	}
	m.weight += r.Weight
	m.loss += r.Weight * r.Loss
	for i, v := range r.Metrics {
		m.metrics[i] += r.Weight * v
	}
}

// result returns the means, NaN if nothing was added. It overwrites metrics. For one batch the result has the bits of
// that batch: f32 times f32 is exact in f64. summed returns the sums instead, of batches whose weights are 1.
func (m *mean) result(metrics []float64, summed bool) (float64, []float64) {
	metrics, by := metrics[:0], m.by(summed)
	for _, v := range m.metrics {
		metrics = append(metrics, v/by)
	}
	return m.loss / by, metrics
}

// metric returns one of the metrics of result.
func (m *mean) metric(i int, summed bool) float64 { return m.metrics[i] / m.by(summed) }

// by returns what sums are divided by.
func (m *mean) by(summed bool) float64 {
	if summed && m.weight > 0 {
		return 1
	}
	return m.weight
}
