package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
)

const (
	// warnedShare is the part of a step from which on what is slow has a warning.
	warnedShare = 0.1
	warnedSlow  = 2 // reasons that a warning has
)

// SlowStep names what takes more than twice its floor, if that is more than a tenth of the step; otherwise it is empty.
// Small kernels do not count: a small model, or a small batch, has nothing else.
func SlowStep(p *cost.Prediction) string {
	slow := p.SlowMS()
	if slow <= warnedShare*p.MS {
		return ""
	}
	var list []string
	for _, s := range p.Slow {
		if !s.Small && len(list) < warnedSlow {
			list = append(list, fmt.Sprintf("%s in %s: %s; %s", milliseconds(s.MS), first(s.Kinds[0].Tensors), s.Why,
				s.Mend))
		}
	}
	return fmt.Sprintf("of a predicted step of %s, %s take more than twice their floor: %s", milliseconds(p.MS),
		milliseconds(slow), strings.Join(list, ". "))
}

// first names the first of some tensors.
func first(tensors []string) string {
	more := ""
	if n := len(tensors) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return tensors[0] + more
}

func milliseconds(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2g ms", ms)
}
