package session

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/train"
)

// warnOfOneThread says which graphs --deterministic gives one of several threads.
func warnOfOneThread(s *Session, threads int) {
	if threads == 1 {
		return
	}
	for _, g := range s.Graphs() {
		if g.OneThread != "" {
			s.log.Warn(fmt.Sprintf("--deterministic: one thread computes the %s graph %s, because %s may have other "+
				"bits with more; steps take longer",
				g.Use, g.File, g.OneThread))
		}
	}
	for i, o := range s.Optimizers {
		if names := train.OneThread(o); len(names) > 0 {
			s.log.Warn(fmt.Sprintf("--deterministic: one thread computes the optimizer %s: %s",
				s.plan.Players[i].Optimizer.Name, strings.Join(names, ", ")))
		}
	}
}
