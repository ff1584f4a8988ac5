package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Divergence warns of a loss that explodes: one that is not finite, or far above those of the last steps. It knows
// which steps were normal. The zero value is ready to use.
type Divergence struct {
	recent []float64 // the last finite losses; next is the oldest if there are usualSteps
	next   int
	sorted []float64 // the same, in order
	silent int64     // up to this step, after a warning

	level  float64 // the median of the losses at the last normal step
	odd    int     // steps since then with a finite loss far above it
	normal int64   // the last normal step

	base  float64 // the lowest level
	sound int64   // the last normal step that was not far above it
	high  int     // steps since then with a finite loss far above it

	best   float64 // the lowest level of bestSteps losses or more
	steady int64   // the last normal step that was not above it by the factor risen
}

const (
	usualSteps = 50   // of which the median is taken
	explosion  = 10   // times the median
	quietSteps = 1000 // after a warning
	bestSteps  = 10   // fewer may all be of easy rows
	risen      = 5    // times the best level: no noise, though it may be another loss
)

// Step takes a step, may warn, and reports whether the step was normal. It costs a search in the last losses.
func (d *Divergence) Step(w *event.Step, warn func(text string, args ...any)) (normal bool) {
	if len(w.Rows) == 0 {
		return false
	}
	text, finite := "", !math.IsNaN(w.Loss) && !math.IsInf(w.Loss, 0)
	switch median := d.median(); {
	case !finite:
		text = fmt.Sprintf("the loss is not finite (%v)", w.Loss)
	case w.Skipped:
		text = "the gradients are not finite"
	case median > 0 && w.Loss >= explosion*median:
		before := fmt.Sprintf("the median of the last %d steps", len(d.recent))
		if len(d.recent) == 1 {
			before = "that of the step before"
		}
		text = fmt.Sprintf("the loss is %s, %.0f times %s (%s)", units.Number(w.Loss), w.Loss/median, before,
			units.Number(median))
	}
	normal = d.take(w.Step, w.Loss, w.Skipped || !finite)
	if text == "" || w.Step <= d.silent {
		return normal
	}
	d.silent = w.Step + quietSteps
	warn(fmt.Sprintf("step %d: %s, grad_norm %.4g, learning rate %.1e: lower --lr, clip gradients (--grad-clip), or "+
		"lengthen --warmup-steps",
		w.Step, text, w.GradNorm, w.LR))
	return normal
}

// take counts a step with rows, and reports whether it was normal: it was not skipped, and its loss is not far above
// the level of the steps before it. A loss that stays there becomes the level after usualSteps: it may be another loss,
// as after a change of the graph.
func (d *Divergence) take(step int64, loss float64, skipped bool) bool {
	if !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		d.keep(loss)
	}
	if skipped {
		return false
	}
	if d.base > 0 && loss >= explosion*d.base {
		d.high++
	} else {
		d.high = 0
	}
	if d.level > 0 && loss >= explosion*d.level {
		if d.odd++; d.odd < usualSteps {
			return false
		}
		d.level = 0
	}
	// otherwise it is one of the losses that exploded
	if median := d.median(); d.level <= 0 || median < explosion*d.level {
		d.level = median
	}
	d.odd, d.normal = 0, step
	if d.base <= 0 || d.level < d.base {
		d.base = d.level
	}
	if d.high == 0 {
		d.sound = step
	}
	if d.best <= 0 || loss < risen*d.best {
		d.steady = step
	}
	if len(d.recent) >= bestSteps && (d.best <= 0 || d.level < d.best) {
		d.best = d.level
	}
	return true
}

// Ruined reports how many steps there were since the last one whose loss was not far above the lowest level, and that
// level. Unlike a normal step, it does not take a loss for the level because it lasts.
func (d *Divergence) Ruined() (steps int, level float64) { return d.high, d.base }

// Sound returns the last normal step whose loss was not far above the lowest level.
func (d *Divergence) Sound() int64 { return d.sound }

// Forget forgets the lowest level: the losses before are of another kind, such as those of other data.
func (d *Divergence) Forget() { d.base, d.high, d.best = 0, 0, 0 }

// Steady returns the last normal step whose loss was near the best level of the run, 0 before the first. Weights of
// later steps may be ruined, though losses that lasted have become the level.
func (d *Divergence) Steady() int64 { return d.steady }

// Normal returns the last normal step, 0 before the first. The weights before that step were good: its loss was
// computed with them.
func (d *Divergence) Normal() int64 { return d.normal }

// Next returns what another process of the run begins with: the level of the losses and the last normal step. It
// compares losses with those of its own steps only.
func (d *Divergence) Next() Divergence {
	return Divergence{
		level: d.level, odd: d.odd, normal: d.normal, base: d.base, sound: d.sound, high: d.high, best: d.best,
		steady: d.steady,
	}
}

// median returns that of the last losses, 0 before the first. A rate that is much too high shows in the second step.
func (d *Divergence) median() float64 {
	if len(d.sorted) == 0 {
		return 0
	}
	return d.sorted[len(d.sorted)/2]
}

// keep adds a loss in the place of the oldest.
func (d *Divergence) keep(loss float64) {
	if len(d.recent) < usualSteps {
		d.recent = append(d.recent, loss)
	} else {
		at, _ := slices.BinarySearch(d.sorted, d.recent[d.next])
		d.sorted = slices.Delete(d.sorted, at, at+1)
		d.recent[d.next], d.next = loss, (d.next+1)%usualSteps
	}
	at, _ := slices.BinarySearch(d.sorted, loss)
	d.sorted = slices.Insert(d.sorted, at, loss)
}
