package feed

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Guest is what the other ranks of a machine have: a connection with the owner.
type Guest struct {
	*line
	whole   *ring.Ring
	damages damages
	meeting Meeting
	lost    func() error  // why the owner has ended
	leaving chan struct{} // closed by close
	leave   sync.Once
	reading sync.WaitGroup
	workers chan []int // gets the processes of each plugin when they have started

	mu      sync.Mutex // guards the rest
	next    uint64
	waiting map[uint64]chan *answer
	gone    chan struct{} // closed when the connection has ended; err is set before
	err     error
}

// visit connects with the owner, and maps its ring.
func (c *Config) visit(ctx context.Context, p plan) (*Feed, error) {
	own := c.Meeting.World().Rank
	conn, memory, err := knock(ctx, p.door, own, c.Secret)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
			errors.Is(err, syscall.EPIPE) { // it has ended meanwhile, and says why
			return nil, c.lost(c.Machine.First, ctx.Done())
		}
		return nil, hint.Errorf("if the ranks do not see the same files, start them with different values of "+
			"XTTS_RANKS_MACHINE: then each has plugins of its own",
			"connect with rank %d, which has the plugins of this machine: %w", c.Machine.First, err)
	}
	whole, err := ring.Attach(memory, p.total, p.slotSize)
	if err != nil {
		return nil, errors.Join(err, memory.Close(), conn.Close())
	}
	g := &Guest{
		line: newLine(conn), whole: whole, meeting: c.Meeting, leaving: make(chan struct{}),
		workers: make(chan []int, 1), waiting: map[uint64]chan *answer{}, gone: make(chan struct{}),
	}
	g.lost = func() error { return c.lost(c.Machine.First, g.leaving) }
	g.reading.Go(g.read)
	return &Feed{Ring: whole.Part(p.first[own], p.slots[own]), Guest: g}, nil
}

// Plugins waits until the owner has started the plugins, and returns their processes, by plugin.
func (g *Guest) Plugins(ctx context.Context) (all []supervise.Processes, err error) {
	select {
	case workers := <-g.workers:
		for i, n := range workers {
			all = append(all, &processes{g, i, n})
		}
		return all, nil
	case <-g.gone:
		return nil, g.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read takes what the owner sends until the connection ends.
func (g *Guest) read() {
	for {
		a := new(answer)
		if g.receive(a) != nil {
			break
		}
		switch a.Kind {
		case ready:
			select {
			case g.workers <- a.Workers:
			default:
			}
		case damaged:
			g.damages.happen()
		case answered:
			g.mu.Lock()
			to := g.waiting[a.ID]
			delete(g.waiting, a.ID)
			g.mu.Unlock()
			if to != nil {
				to <- a
			}
		}
	}
	g.conn.Close()
	g.err = g.lost()
	close(g.gone)
}

// ask sends a request and waits for its answer. When ctx ends, it asks for an early answer, and waits for that: until
// then, a process may write to the slot. When a rank is lost, the run ends, and no one uses the slot any more.
func (g *Guest) ask(ctx context.Context, q *request) (*answer, error) {
	to := make(chan *answer, 1)
	g.mu.Lock()
	g.next++
	q.ID = g.next
	g.waiting[q.ID] = to
	g.mu.Unlock()
	if g.send(q) != nil {
		<-g.gone // the connection is closed
		return nil, g.err
	}
	done := ctx.Done()
	for {
		select {
		case a := <-to:
			return a, nil
		case <-g.gone:
			return nil, g.err
		case <-g.meeting.Lost():
			return nil, g.meeting.Err()
		case <-done:
			_ = g.send(&request{Kind: cancel, ID: q.ID}) // an error closes the connection
			done = nil
		}
	}
}

// close ends the connection. It is idempotent.
func (g *Guest) close() error {
	g.leave.Do(func() { close(g.leaving) })
	g.conn.Close()
	g.reading.Wait()
	return g.whole.Close()
}

// processes are those of a plugin of the owner. It implements supervise.Processes.
type processes struct {
	guest   *Guest
	plugin  int
	workers int
}

// Call implements supervise.Processes: as that of a *supervise.Pool, but for the end of the owner.
func (p *processes) Call(ctx context.Context, req supervise.Request) (supervise.Result, error) {
	a, err := p.guest.ask(ctx, &request{Kind: call, Plugin: p.plugin, Call: &req})
	if err != nil {
		return supervise.Result{}, err
	}
	err = supervise.DecodeError(a.Err)
	if supervise.Final(err) {
		err = p.guest.defers(ctx, err)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the reason for the end, not its effect in the owner
	}
	return a.result(), err
}

// defers returns the end of the owner for the failure of a plugin, of which the owner ends first and which it reports.
func (g *Guest) defers(ctx context.Context, failure error) error {
	wait := time.NewTimer(lastWords)
	defer wait.Stop()
	select {
	case <-g.meeting.Lost():
		return g.meeting.Err()
	case <-ctx.Done():
	case <-wait.C:
	}
	return failure
}

// Kick implements supervise.Processes. If the owner has ended, its processes have too.
func (p *processes) Kick(id supervise.ProcessID, reason string) {
	_, _ = p.guest.ask(context.Background(), &request{Kind: kick, Plugin: p.plugin, Process: id, Reason: reason})
}

// KickAll implements supervise.Processes.
func (p *processes) KickAll(reason string) {
	_, _ = p.guest.ask(context.Background(), &request{Kind: kickAll, Plugin: p.plugin, Reason: reason})
}

// Workers implements supervise.Processes.
func (p *processes) Workers() int { return p.workers }
