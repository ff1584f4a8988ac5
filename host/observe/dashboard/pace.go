package dashboard

import (
	"context"
	"net"
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

// wait returns when the turn of a request has come, or false if its client has gone.
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
		return false
	}
}

// fewListener accepts a connection when there is room for one.
type fewListener struct {
	net.Listener
	room chan struct{}
	done chan struct{}
	once sync.Once
}

func few(l net.Listener, most int) net.Listener {
	return &fewListener{Listener: l, room: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *fewListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &conn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close implements net.Listener.
func (l *fewListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type conn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
