package meet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// TestSaysForWhomItWaits: rank 0 names the ranks that have not joined, again and again.
func TestSaysForWhomItWaits(t *testing.T) {
	defer func(first, next time.Duration) { firstWord, nextWord = first, next }(firstWord, nextWord)
	firstWord, nextWord = 20*time.Millisecond, 20*time.Millisecond
	lines := make(chan string, 1000)
	address := free(t)
	lead := config(0, 3, address)
	lead.Say = func(line string) { lines <- line }
	var all sync.WaitGroup
	join := func(c Config) {
		g, err := Join(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		g.Close(nil)
	}
	all.Go(func() { join(lead) })
	until := func(end string) {
		deadline := time.After(10 * time.Second)
		for {
			select {
			case line := <-lines:
				want := "rank 0 waits at " + address + " for " + end + ", up to "
				if strings.HasPrefix(line, want) && strings.HasSuffix(line, " s more") {
					return
				}
			case <-deadline:
				t.Errorf("rank 0 does not say that it waits for %s", end)
				return
			}
		}
	}
	until("the ranks 1, 2")
	until("the ranks 1, 2")
	all.Go(func() { join(config(1, 3, address)) })
	until("rank 2")
	all.Go(func() { join(config(2, 3, address)) })
	all.Wait()
}

// TestSays: rank 0 says at once why the run ends: it may save for minutes before its error is shown. If its output is
// not read, it has told the others before.
func TestSays(t *testing.T) {
	var said sync.Map
	unread := make(chan struct{})
	errs := together(t, 3, func(c *Config) {
		rank := c.World.Rank
		c.Ends = func(line string) {
			said.Store(rank, line)
			if rank == 0 {
				<-unread
			}
		}
	}, func(g *Group) error {
		if g.World().Rank == 2 {
			g.peers[0].conn.Close()
			<-g.Lost()
			return g.Err()
		}
		if g.World().Rank == 1 {
			defer close(unread)
		}
		_, err := g.All(nil)
		return err
	})
	for rank, err := range errs {
		line, _ := said.Load(rank)
		text, _ := line.(string)
		if err == nil || (rank == 0) != strings.HasPrefix(text, "the run ends: rank 2 ") {
			t.Errorf("rank %d says %q and ends with %v", rank, line, err)
		}
	}
}

// TestEndAfterAnother: a file that is missing after the end of another rank does not hide that. What a rank failed of
// before, or by itself, stays its only error.
func TestEndAfterAnother(t *testing.T) {
	missing := fmt.Errorf("open: %w", fs.ErrNotExist)
	for _, c := range []struct {
		fails error
		first bool // before the other rank
		code  int
	}{{missing, false, exit.StatusRank}, {missing, true, 1}, {exit.Refused(errors.New("a setting")), false, 2}} {
		errs := together(t, 2, nil, func(g *Group) error {
			if (g.World().Rank == 1) == c.first {
				g.Fail(c.fails)
				return c.fails
			}
			<-g.Lost()
			return c.fails
		})
		if err := errs[1]; !errors.Is(err, c.fails) || exit.Code(err) != c.code ||
			(c.code == exit.StatusRank) != strings.Contains(err.Error(), "rank 0 failed: ") {
			t.Errorf("rank 1 fails of %v, first %v: %v", c.fails, c.first, err)
		}
	}
}

// TestLeadEndsBeforeItAnswers: a rank whose connection ends before rank 0 has said anything tries again.
func TestLeadEndsBeforeItAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	var all sync.WaitGroup
	join := func(c Config) {
		g, err := Join(t.Context(), c)
		if err != nil {
			t.Errorf("rank %d: %v", c.World.Rank, err)
		}
		g.Close(nil)
	}
	all.Go(func() { join(config(1, 2, address)) })
	for _, said := range []string{"", greeting[:5], greeting} {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(said))
		conn.Close()
	}
	l.Close()
	all.Go(func() { join(config(0, 2, address)) })
	all.Wait()
}

// TestSaysWhatIsNotReached: a rank that does not reach rank 0 says so, and why.
func TestSaysWhatIsNotReached(t *testing.T) {
	defer func(d time.Duration) { firstWord = d }(firstWord)
	firstWord = 100 * time.Millisecond
	c, said := config(1, 2, free(t)), make(chan string, 100)
	c.Wait = 2 * time.Second
	c.Say = func(line string) { said <- line }
	if _, err := Join(t.Context(), c); err == nil {
		t.Error("joined")
	}
	want := "rank 1 does not reach rank 0 at " + c.Address + ", and tries for up to 2.0 s: "
	if line := <-said; !strings.HasPrefix(line, want) || !strings.Contains(line, "connection refused") {
		t.Error(line)
	}
}
