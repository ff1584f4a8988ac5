// Package stat computes running statistics in constant memory:
//
//	var busy stat.Moments
//	for sample := range samples {
//		busy.Add(sample)
//	}
//	fmt.Println(busy.Mean, busy.Std(), busy.N)
package stat

import "math"

// Moments are the mean of numbers and their deviation from it. The zero value has no numbers.
type Moments struct {
	N    int64
	Mean float64
	// M2 is the sum of squared distances from Mean.
	M2 float64
}

// Add counts a number, by Welford's method, which avoids cancellation. B. P. Welford, Technometrics 4 (1962), 419.
func (m *Moments) Add(v float64) {
	m.N++
	d := v - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += d * (v - m.Mean)
}

// Join adds the numbers of o. T. F. Chan, G. H. Golub, R. J. LeVeque, The American Statistician 37 (1983), 242.
func (m *Moments) Join(o Moments) {
	if m.N == 0 || o.N == 0 {
		if m.N == 0 {
			*m = o
		}
		return
	}
	n, d := m.N+o.N, o.Mean-m.Mean
	m.M2 += o.M2 + d*d*float64(m.N)*float64(o.N)/float64(n)
	m.Mean += d * float64(o.N) / float64(n)
	m.N = n
}

// Std is the standard deviation, over N and not N-1; 0 without numbers.
func (m Moments) Std() float64 { return math.Sqrt(m.M2 / float64(max(1, m.N))) }
