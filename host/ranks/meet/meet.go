// Package meet joins the ranks of a run over TCP: every rank but the first is connected with rank 0.
//
//	g, err := meet.Join(ctx, meet.Config{World: w, Address: "node1:29511", Secret: secret, ...})
//	...
//	defer func() { g.Close(err) }()
//	err = g.Agree(facts)           // all ranks are to do the same
//	all, err := g.All(mine)        // every rank gets what each has
//	first, err := g.Share(mine)    // every rank gets what rank 0 has
//	err = g.Reduce(...)            // combines large values
//	<-g.Lost()                     // another rank has ended
//
// Gather, Share, All, Agree, Barrier and Reduce are called by all ranks in the same order, by one goroutine at a time.
// A call that waits for others ends with an error when one of them does. Note may be called at any time.
//
// A rank shows that it knows the secret before anything else of it is read, and so does rank 0 (handshake.go). What
// follows is neither encrypted nor signed. Each rank says once a second that it lives, so a machine that vanishes is
// noticed, however long another call of a rank takes.
package meet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config is what a rank needs to join the others.
type Config struct {
	World   world.World
	Address string // host and port where rank 0 listens
	Secret  string
	// Wait is how long the ranks wait for each other to join.
	Wait time.Duration
	// Silence is how long nothing may be heard of a rank.
	Silence time.Duration
	// Say, which may be nil, gets lines for a person while the ranks join: for whom this one waits, and who was
	// refused.
	Say func(line string)
	// Ends, which may be nil, gets a line on rank 0 that says why the group is not complete any more. The other ranks
	// know by then.
	Ends func(line string)
	// Noted, which may be nil, gets the notes of the others on rank 0, in the order of each rank: before a value that
	// the rank sends later. It must not call the Group.
	Noted func(rank int, data []byte)
}

// Group is the ranks of a run, as one of them sees the others.
type Group struct {
	cfg   Config
	peers []*peer // on rank 0 by rank, without itself; on the others rank 0
	seq   uint32  // of the next value
	// parted is set when all ranks have the same reason to end, and first when it is that of this one.
	parted, first bool
	held          net.Listener // by which this process has the rank on its machine; may be nil

	mu      sync.Mutex
	err     error
	lost    chan struct{} // closed when err is set
	told    chan struct{} // closed when rank 0 has told the others
	leaving chan struct{} // closed when this rank waits for no value any more
	tasks   sync.WaitGroup
}

// LostError says that another rank has ended or failed, or is not heard of any more.
type LostError struct{ Text string }

func (e *LostError) Error() string { return e.Text }

// ExitStatus implements the interface of package exit.
func (e *LostError) ExitStatus() int { return exit.StatusRank }

// newGroup returns a group that is connected with the others, and begins to listen to them.
func newGroup(c Config, peers []*peer) *Group {
	g := &Group{
		cfg: c, peers: peers, lost: make(chan struct{}), told: make(chan struct{}), leaving: make(chan struct{}),
	}
	for _, p := range peers {
		p.hear() // it has waited for those that joined later
		g.tasks.Go(func() { g.listen(p) })
		g.tasks.Go(func() { g.keepAlive(p) })
	}
	return g
}

// World is the rank and the number of ranks.
func (g *Group) World() world.World { return g.cfg.World }

// Lost is closed when another rank has ended or failed. Err says which.
func (g *Group) Lost() <-chan struct{} { return g.lost }

// Err returns why the group is not complete any more; nil if it is.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail records the first reason why the group is not complete, and rank 0 tells the others.
func (g *Group) fail(text string) {
	g.mu.Lock()
	first := g.err == nil
	if first {
		g.err = &LostError{text}
	}
	g.mu.Unlock()
	if !first {
		return
	}
	close(g.lost)
	if g.cfg.World.Leads() {
		g.tell(text)
	}
	close(g.told)
	if g.cfg.World.Leads() && g.cfg.Ends != nil {
		g.cfg.Ends("the run ends: " + visible.Text(text))
	}
}

// tell tells all others that can still be reached why this rank ends.
func (g *Group) tell(why string) {
	var all sync.WaitGroup
	for _, p := range g.peers {
		all.Go(func() {
			p.conn.SetWriteDeadline(time.Now().Add(lastWords)) // also of a write that waits
			_ = p.send(failed, 0, []byte(why), lastWords)      // those that have ended get nothing
		})
	}
	all.Wait()
}

// lastWords is how long a rank tries to tell others why it ends.
const lastWords = 2 * time.Second

// Fail tells the others why this rank ends, unless it ends because of one of them. Close follows.
func (g *Group) Fail(outcome error) {
	if g.parted || g.Err() != nil {
		return
	}
	g.first = true
	text := fmt.Sprintf("rank %d failed: %s", g.cfg.World.Rank, firstLine(exit.Text(outcome)))
	if exit.Interrupted(outcome) {
		text = fmt.Sprintf("rank %d was interrupted", g.cfg.World.Rank)
	}
	g.tell(text)
}

// Close leaves the group. With nil, it waits until all ranks have done so, and returns an error if one failed instead.
// Otherwise the others get the error. If it is of a file that is not there, and another rank has ended before, Close
// returns that: rank 0 may have removed the file. No goroutine and no port is left. It is idempotent.
func (g *Group) Close(outcome error) error {
	if g == nil {
		return nil
	}
	select {
	case <-g.leaving:
		return nil
	default:
	}
	var err error
	together := outcome == nil || g.parted
	if together {
		err = g.leave()
	} else if errors.Is(outcome, fs.ErrNotExist) && !g.first {
		err = g.Err()
	}
	close(g.leaving)
	if !together {
		g.Fail(outcome)
	}
	if g.Err() != nil {
		<-g.told
	}
	// What the others still send is read: a connection that is closed with something unread takes the last message
	// with it.
	for _, p := range g.peers {
		p.conn.SetReadDeadline(time.Now().Add(lastWords))
		p.closeWrite()
	}
	g.tasks.Wait()
	for _, p := range g.peers {
		p.conn.Close()
	}
	letGo(g.held)
	return err
}

// leave says goodbye, and waits until the others have.
func (g *Group) leave() error {
	if err := g.Err(); err != nil {
		return err
	}
	for _, p := range g.peers {
		if err := p.send(bye, 0, nil, g.cfg.Silence); err != nil {
			g.fail(g.gone(p, err))
		}
	}
	for _, p := range g.peers {
		select {
		case <-p.left:
		case <-g.lost:
			return g.Err()
		}
	}
	return nil
}

// gone says that the connection with a rank has ended.
func (g *Group) gone(p *peer, err error) string {
	if errors.Is(err, errSilent) {
		return fmt.Sprintf("%s has taken nothing for %g s (--rank-timeout)", p, g.cfg.Silence.Seconds())
	}
	return fmt.Sprintf("%s ended", p)
}

// disagreement is an error of ranks that were not started alike.
func disagreement(format string, args ...any) error {
	return exit.Refused(hint.Errorf("start all ranks with the same program, the same flags and the same files", format,
		args...))
}
