package adapt

import (
	"fmt"
	"math"
)

// Need returns the number of batches to have in preparation or READY, so that the slower one of pipeline and trainer
// waits for the other one in at most 1 % of the time: those of the pace, and those that bridge the variation.
func (m *Measured) Need() int { return m.pace() + m.bridge() }

// pace is the number of batches in preparation while the pipeline delivers as fast as it is to. By Little's law
// (Operations Research 9, 1961) it is Work, divided by the time between two batches. That is the trainer's or, if
// batches queue, because the pipeline cannot work on more of them at the same time, the larger one.
func (m *Measured) pace() int {
	interval := m.Train.Mean
	if m.Queue > queued*m.Work {
		interval = max(interval, m.Ready.Mean)
	}
	return int(min(math.Ceil(m.Work/interval), math.MaxInt16))
}

// idle is the share of time in which the slower one of pipeline and trainer may wait for the other one.
const idle = 0.01

// bridge is the number of READY batches that bridge the variation of the times.
//
// The number of READY batches is approximated by a Brownian motion between 0, where the trainer waits, and B, where the
// pipeline waits. Its drift a is the difference of the batches that the two can process per second, and its variance v
// the sum of the variances of these numbers. Without a flow of probability at either end, the density p satisfies
// a p = v/2 p', so it grows as exp(g x), g = 2a/v, with the distance x from the end at which the slower one waits
// (Harrison, Brownian Motion and Stochastic Flow Systems, 1985, chapter 5). The share of time within one batch of that
// end is (exp(g) - 1) / (exp(g B) - 1). It is at most 1 % from
//
//	B = ln(1 + 100 (exp(g) - 1)) / g
//
// on. That is 1 without variation, and 100 if both are equally fast. With a pipeline that is slower than the trainer,
// B keeps the pipeline from stopping: the trainer waits whatever the depth is.
func (m *Measured) bridge() int {
	spread := m.Ready.spread() + m.Train.spread()
	g := 2 * math.Abs(m.Ready.rate()-m.Train.rate()) / spread
	switch {
	case spread == 0 || g > 100: // B is 1.05 at most
		return 1
	case g < 1e-6: // the limit for g to 0
		return 1 / idle
	}
	return int(math.Ceil(math.Log1p(math.Expm1(g)/idle) / g))
}

// Depth is the number of batches that a pipeline prepares ahead.
type Depth struct {
	Now, Min, Max int

	calm     int  // decisions in a row in which fewer batches would have been enough
	patience int  // the number of them after which the depth shrinks; 0: firstPatience
	shrunk   bool // since it has grown
}

// The first patience, and the largest. It doubles whenever the depth had to grow after it had shrunk.
const firstPatience, mostPatience = 8, 64

// Next decides. It returns why the depth changes, or "" if it does not.
//
// The depth grows to Need, if that is more than an eighth above it, but at most doubles. If the pipeline limits the
// run, it grows to Max: more batches at a time keep more cores busy, and what that gains cannot be told from the times
// of fewer. It shrinks by a quarter after several decisions in a row in which Need was at most three quarters of it,
// but not below Need, or in which the pipeline was always held back, but not below its pace and one batch. A depth that
// is never less than enough cannot be told from one that is too large.
func (d *Depth) Next(m Measured) (why string) {
	if m.Train.N < fewest || !m.Held && !m.known() {
		return ""
	}
	least := m.pace() + 1
	need, why := least, fmt.Sprintf("the next batch was always ready, and the trainer takes %s", m.Train)
	if m.known() {
		need = m.Need()
	}
	if !m.Held {
		if m.limits() {
			need = d.Max
		}
		least, why = need, fmt.Sprintf("a batch takes the pipeline %s, and the trainer %s", m.Ready, m.Train)
	}
	need, least = min(max(need, d.Min), d.Max), max(least, d.Min)
	switch {
	case need > d.Now+d.Now/8 && !m.Held:
		if d.shrunk {
			d.patience, d.shrunk = min(2*d.patience, mostPatience), false
		}
		d.Now, d.calm = min(need, 2*d.Now), 0
		return why
	case 4*need > 3*d.Now && !m.Held, least >= d.Now:
		d.calm = 0
		return ""
	}
	d.patience = max(d.patience, firstPatience)
	if d.calm++; d.calm < d.patience {
		return ""
	}
	d.Now, d.calm, d.shrunk = max(least, d.Now-(d.Now+3)/4), 0, true
	return why
}
