package supervise

import (
	"errors"
	"fmt"
	"time"
)

// Abandon ends the lifelines of all processes without any other word, as the end of the host does, and returns when the
// processes have ended. A process that has not ended by itself within the limit is killed and reported. Abandon is for
// tests of plugins: the kernel kills the plugins of a host that has really ended. Close is still required.
func (p *Pool) Abandon(limit time.Duration) error {
	p.update(func() { p.closing = true })
	p.stop()
	var errs []error
	all := p.processes()
	for _, proc := range all {
		proc.active() // to the end
		proc.lifeline.Close()
	}
	for _, proc := range all {
		if !proc.awaitExit(limit) {
			errs = append(errs, fmt.Errorf(
				"process %s was still running %v after the end of its lifeline (descriptor 4)", proc.child.ID(), limit))
			proc.kill(endReason, "")
		}
	}
	p.group.Wait()
	return errors.Join(errs...)
}
