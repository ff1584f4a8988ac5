package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/ranks/proof"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Join returns when all ranks are connected. Rank 0 listens only until then.
func Join(ctx context.Context, c Config) (*Group, error) {
	if c.Say == nil {
		c.Say = func(string) {}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Wait, errLate)
	defer cancel()
	held, err := c.take()
	if err != nil {
		return nil, err
	}
	var peers []*peer
	if c.World.Leads() {
		peers, err = c.lead(ctx, name)
	} else {
		peers, err = c.follow(ctx, name)
	}
	if err != nil {
		for _, p := range peers {
			if p != nil {
				p.conn.Close()
			}
		}
		letGo(held)
		return nil, err
	}
	g := newGroup(c, peers)
	g.held = held
	return g, nil
}

var errLate = errors.New("not all ranks have joined in time")

// late is the error of ranks that did not come.
func (c *Config) late(who string) error {
	return hint.Errorf("see why they have not started or cannot connect: their messages, MASTER_ADDR, MASTER_PORT and "+
		"the firewall", "%s did not join in %s at %s", who, units.Duration(c.Wait), c.Address)
}

// firstWord is when rank 0 says first for whom it waits, and nextWord the time until it says so again.
var firstWord, nextWord = 10 * time.Second, time.Minute

// lead waits for all others.
func (c *Config) lead(ctx context.Context, name string) ([]*peer, error) {
	l, err := c.listen(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	began, patient := time.Now(), time.NewTimer(firstWord)
	defer patient.Stop()
	joined, gone := make(chan *peer), make(chan *peer, proof.MaxStrangers)
	go c.accept(ctx, l, name, joined)
	all := make([]*peer, c.World.Size)
	var waiting sync.WaitGroup
	for left := c.World.Size - 1; left > 0; {
		select {
		case p := <-joined:
			if first := all[p.rank]; first != nil {
				_ = answer(p.conn, fmt.Sprintf("rank %d %s by a process on %s", p.rank, isTaken, first.host))
				p.conn.Close()
				c.Say(fmt.Sprintf("refused a second rank %d, on %s", p.rank, visible.Short(p.host, 80)))
				continue
			}
			all[p.rank] = p
			left--
			waiting.Go(func() { p.watch(ctx, gone) })
		case p := <-gone:
			c.Say(fmt.Sprintf("%s has ended before all ranks had joined; rank 0 waits for it", p))
			p.conn.Close()
			all[p.rank] = nil
			left++
		case <-patient.C:
			c.Say(fmt.Sprintf("rank 0 waits at %s for %s, up to %s more", l.Addr(), missing(all),
				units.Duration(max(0, c.Wait-time.Since(began).Round(time.Second)))))
			patient.Reset(nextWord)
		case <-ctx.Done():
			if context.Cause(ctx) != errLate {
				return all, context.Cause(ctx)
			}
			return all, c.late(missing(all))
		}
	}
	for _, p := range all[1:] {
		p.conn.SetReadDeadline(time.Unix(1, 0)) // ends watch
	}
	waiting.Wait()
	for _, p := range all[1:] {
		p.conn.SetReadDeadline(time.Time{})
		if err := answer(p.conn, ""); err != nil {
			return all, &LostError{fmt.Sprintf("%s ended", p)}
		}
	}
	return all[1:], nil
}

// watch reports a rank that ends while it waits for others. It has nothing to say until then.
func (p *peer) watch(ctx context.Context, gone chan<- *peer) {
	_, err := p.conn.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	select {
	case gone <- p:
	case <-ctx.Done():
	}
}

// missing names the ranks that have not joined.
func missing(all []*peer) string {
	var names []string
	for rank, p := range all {
		if rank > 0 && p == nil {
			names = append(names, fmt.Sprint(rank))
		}
	}
	if len(names) == 1 {
		return "rank " + names[0]
	}
	return "the ranks " + strings.Join(names, ", ")
}

// listen opens the port of rank 0: at the address that the others know, or at all addresses of the machine if it is
// none of them, such as that of a service of Kubernetes.
func (c *Config) listen(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
		if l, err = lc.Listen(ctx, "tcp", ":"+port); err == nil {
			c.Say(fmt.Sprintf("%s is no address of this machine: rank 0 listens on port %s of all its addresses", host,
				port))
		}
	}
	if err != nil {
		return nil, exit.Refused(hint.Errorf("see whether rank 0 of this run has been started twice; for another run, "+
			"name another port with MASTER_PORT, on all ranks",
			"rank 0 cannot listen at %s: %w", c.Address, err))
	}
	return l, nil
}

// accept passes on the ranks that have shown the secret.
func (c *Config) accept(ctx context.Context, l net.Listener, name string, joined chan<- *peer) {
	trying := make(chan struct{}, proof.MaxStrangers)
	for {
		conn, err := l.Accept()
		if err != nil {
			return // the listener is closed
		}
		trying <- struct{}{}
		go func() {
			defer func() { <-trying }()
			p, err := c.admit(conn, name)
			if err != nil {
				conn.Close()
				c.Say(fmt.Sprintf("refused a connection from %s: %s", conn.RemoteAddr(), visible.Text(err.Error())))
				return
			}
			select {
			case joined <- p:
			case <-ctx.Done():
				conn.Close()
			}
		}()
	}
}

// follow connects with rank 0.
func (c *Config) follow(ctx context.Context, name string) ([]*peer, error) {
	say := time.Now().Add(firstWord)
	for {
		p, err := c.reach(ctx, name)
		if err == nil {
			return []*peer{p}, nil
		}
		if ctx.Err() != nil {
			if context.Cause(ctx) != errLate {
				return nil, context.Cause(ctx)
			}
			return nil, c.late("rank 0")
		}
		if _, ok := errors.AsType[*net.OpError](err); !ok { // it answered
			return nil, err
		}
		if time.Now().After(say) {
			say = time.Now().Add(nextWord)
			c.Say(fmt.Sprintf("rank %d does not reach rank 0 at %s, and tries for up to %s: %v", c.World.Rank,
				c.Address, units.Duration(c.Wait), err))
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// reach connects once. A *net.OpError means that no one answered.
func (c *Config) reach(ctx context.Context, name string) (*peer, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		var op *net.OpError
		if !errors.As(err, &op) { // an unknown name may be known soon
			err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	p, err := c.introduce(conn, name)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}
