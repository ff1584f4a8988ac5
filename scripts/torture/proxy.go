package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// proxy is between a rank and rank 0. It passes on what they send until it is told to do something else.
type proxy struct {
	listener net.Listener
	lead     string // address of rank 0
	over     chan struct{}
	tasks    sync.WaitGroup

	mu    sync.Mutex
	holds [2]chan struct{} // by direction, from the rank and to it: closed when bytes pass
	conns []net.Conn
}

func newProxy(lead string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, lead: lead, over: make(chan struct{})}
	for i := range p.holds {
		p.holds[i] = make(chan struct{})
		close(p.holds[i])
	}
	p.tasks.Go(p.serve)
	return p, nil
}

func (p *proxy) serve() {
	for {
		rank, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.connect(rank) })
	}
}

// connect waits until rank 0 listens: the rank would take a connection that is closed for that with something else.
func (p *proxy) connect(rank net.Conn) {
	for {
		lead, err := net.Dial("tcp", p.lead)
		if err == nil {
			p.mu.Lock()
			p.conns = append(p.conns, rank, lead)
			p.mu.Unlock()
			p.tasks.Go(func() { p.pass(0, lead, rank) })
			p.tasks.Go(func() { p.pass(1, rank, lead) })
			return
		}
		select {
		case <-p.over:
			rank.Close()
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pass copies bytes of a direction.
func (p *proxy) pass(direction int, to, from net.Conn) {
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		p.mu.Lock()
		open := p.holds[direction]
		p.mu.Unlock()
		select {
		case <-open:
		case <-p.over:
		}
		if n > 0 {
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			to.(*net.TCPConn).CloseWrite()
			return
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// hold keeps back what is sent: in both directions (0), from the rank (1), or to it (2). What it returns ends that.
func (p *proxy) hold(way int) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held []chan struct{}
	for direction := range p.holds {
		if way == 0 || way == direction+1 {
			p.holds[direction] = make(chan struct{})
			held = append(held, p.holds[direction])
		}
	}
	return func() {
		for _, c := range held {
			close(c)
		}
	}
}

// drop ends the connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.(*net.TCPConn).SetLinger(0) // as a firewall that has forgotten them
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) close() {
	p.listener.Close()
	close(p.over)
	p.drop()
	p.tasks.Wait()
}
