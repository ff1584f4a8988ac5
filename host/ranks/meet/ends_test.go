package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// TestLate: those that do not come are named.
func TestLate(t *testing.T) {
	address := free(t)
	c := config(0, 3, address)
	c.Wait = 300 * time.Millisecond
	go Join(t.Context(), config(1, 3, address))
	if _, err := Join(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "rank 2 did not join") {
		t.Error(err)
	}
	c = config(1, 2, free(t))
	c.Wait = 300 * time.Millisecond
	if _, err := Join(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "rank 0 did not join") {
		t.Error(err)
	}
}

// TestLost: the end of a rank, and the reason that it gives, reach all others at once.
func TestLost(t *testing.T) {
	for _, ends := range []int{0, 1, 2} {
		for _, why := range []string{"", "its disk is full"} {
			errs := together(t, 3, nil, func(g *Group) error {
				if err := g.Barrier(); err != nil {
					return err
				}
				if g.World().Rank != ends {
					began := time.Now()
					_, err := g.All([]byte("waits"))
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("noticed after %v", took)
					}
					return err
				}
				if why != "" {
					return errors.New(why)
				}
				g.mu.Lock()
				g.err = errors.New("killed") // it tells no one
				g.mu.Unlock()
				close(g.told)
				for _, p := range g.peers {
					p.conn.(*net.TCPConn).SetLinger(0)
					p.conn.Close()
				}
				return errors.New("killed")
			})
			for rank, err := range errs {
				lost, ok := errors.AsType[*LostError](err)
				if rank == ends {
					continue
				}
				if !ok || exit.Code(err) != exit.StatusRank ||
					!strings.Contains(lost.Text, fmt.Sprint("rank ", ends)) || !strings.Contains(lost.Text, why) {
					t.Errorf("rank %d ends with %q: rank %d has %v", ends, why, rank, err)
				}
			}
		}
	}
}

// TestSilence: a machine that vanishes has a deadline; a rank that computes for long does not.
func TestSilence(t *testing.T) {
	t.Parallel()
	address := free(t)
	done := make(chan error, 1)
	go func() {
		c := config(0, 2, address)
		c.Silence = 2 * beat
		g, err := Join(t.Context(), c)
		if err == nil {
			_, err = g.All(nil)
			g.Close(err)
		}
		done <- err
	}()
	c := config(1, 2, address)
	conn, err := net.Dial("tcp", address)
	for ; err != nil; conn, err = net.Dial("tcp", address) {
		time.Sleep(10 * time.Millisecond)
	}
	defer conn.Close()
	if _, err := c.introduce(conn, "vanishes"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		const want = "nothing was heard of rank 1 (vanishes) for 2 s (--rank-timeout)"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting")
	}

	ok(t, together(t, 2, func(c *Config) { c.Silence = 2 * beat }, func(g *Group) error {
		if g.World().Rank == 1 {
			time.Sleep(5 * beat)
		}
		return g.Barrier()
	}))
}

// TestLateRank: a rank that joins long after another does not make that one silent.
func TestLateRank(t *testing.T) {
	t.Parallel()
	address, errs := free(t), make(chan error, 3)
	for rank := range 3 {
		go func() {
			c := config(rank, 3, address)
			c.Silence = 2 * beat
			if rank == 2 {
				time.Sleep(4 * beat)
			}
			g, err := Join(t.Context(), c)
			if err == nil {
				time.Sleep(2 * beat)
				err = errors.Join(g.Barrier(), g.Close(nil))
			}
			errs <- err
		}()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestRankComesAgain: a rank that ends while others are awaited may be started again.
func TestRankComesAgain(t *testing.T) {
	t.Parallel()
	address := free(t)
	ctx, end := context.WithCancel(t.Context())
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		Join(ctx, config(1, 3, address))
		close(ended)
	}()
	lead := config(0, 3, address)
	lead.Say = func(line string) {
		if strings.Contains(line, "rank 1 (") && strings.Contains(line, "has ended before all ranks had joined") {
			close(left)
		}
	}
	errs := make(chan error, 3)
	join := func(c Config) {
		g, err := Join(t.Context(), c)
		if err == nil {
			err = errors.Join(g.Barrier(), g.Close(nil))
		}
		errs <- err
	}
	go join(lead)
	time.Sleep(500 * time.Millisecond) // rank 1 has joined
	end()
	<-left
	<-ended
	go join(config(1, 3, address))
	go join(config(2, 3, address))
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestEndAfterFailure: a rank whose work is done learns that another has failed, and one that waits for a value of a
// rank that has left does not wait for ever.
func TestEndAfterFailure(t *testing.T) {
	errs := together(t, 2, nil, func(g *Group) error {
		if g.World().Rank == 1 {
			return errors.New("its disk is full")
		}
		<-g.Lost()
		return nil
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "its disk is full") {
		t.Errorf("rank 0: %v", errs[0])
	}
	errs = together(t, 2, nil, func(g *Group) error {
		if g.World().Rank == 1 {
			return nil
		}
		_, err := g.Gather(nil)
		return err
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "has ended, and value 0 is due") {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// TestSlowNote: a note that waits for a disk is no silence of its rank.
func TestSlowNote(t *testing.T) {
	t.Parallel()
	ok(t, together(t, 2, func(c *Config) {
		c.Silence = 2 * beat
		c.Noted = func(int, []byte) { time.Sleep(4 * beat) }
	}, func(g *Group) error {
		return errors.Join(g.Note([]byte("x")), g.Barrier())
	}))
}

// TestLastRank: a rank that has done its work waits for one that takes long to end, without taking it for silent.
func TestLastRank(t *testing.T) {
	t.Parallel()
	for last := range 2 {
		ok(t, together(t, 2, func(c *Config) { c.Silence = 2 * beat }, func(g *Group) error {
			if err := g.Barrier(); g.World().Rank != last || err != nil {
				return err
			}
			time.Sleep(5 * beat)
			return nil
		}))
	}
}
