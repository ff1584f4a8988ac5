package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/event"
)

// Divergence warns of a loss that explodes: one that is not finite, or far above those of the last steps. The zero value is
// ready to use.
type Divergence struct {
	recent []float64 // the last finite losses; next is the oldest if there are usualSteps
	next   int
	sorted []float64 // the same, in order
	silent int64     // up to this step, after a warning
}

const (
	usualSteps = 50   // of which the median is taken
	explosion  = 10   // times the median
	quietSteps = 1000 // after a warning
)

// Step takes a step, and may warn. It costs a search in the last losses.
func (d *Divergence) Step(w *event.Step, warn func(text string, args ...any)) {
	if len(w.Rows) == 0 {
		return
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
		text = fmt.Sprintf("the loss is %s, %.0f times %s (%s)", number(w.Loss), w.Loss/median, before, number(median))
	}
	if finite {
		d.keep(w.Loss)
	}
	if text == "" || w.Step <= d.silent {
		return
	}
	d.silent = w.Step + quietSteps
	warn(fmt.Sprintf("step %d: %s, grad_norm %.4g, learning rate %.1e: lower --lr, clip gradients (--grad-clip), or lengthen --warmup-steps", w.Step, text, w.GradNorm, w.LR))
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
