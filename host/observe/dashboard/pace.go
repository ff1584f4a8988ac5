package dashboard

import (
	"context"
	"sync"
	"time"
)

const (
	// mostConnections is the number of connections at a time. Others wait until one ends.
	mostConnections = 48
	// perSecond is the number of requests that are answered in a second, after burst of them at once. A page needs some
	// 40 at its start and then 2 in a second. More would take time from training.
	perSecond, burst = 60, 120
)

// pacer lets requests through at a bounded pace.
type pacer struct {
	mu   sync.Mutex // guards next
	next time.Time  // when the next request may begin, at the earliest, if all that could have come at once came
}

// wait returns when the turn of a request has come, or false if its client has gone: the turn is left to others.
func (p *pacer) wait(ctx context.Context) bool {
	const each = time.Second / perSecond
	now := time.Now()
	p.mu.Lock()
	if earliest := now.Add(-burst * each); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(each)
	late := p.next.Sub(now)
	p.mu.Unlock()
	if late <= 0 {
		return true
	}
	t := time.NewTimer(late)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		p.mu.Lock()
		p.next = p.next.Add(-each)
		p.mu.Unlock()
		return false
	}
}
