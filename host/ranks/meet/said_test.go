package meet

import (
	"strings"
	"sync"
	"testing"
	"time"
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
				if want := "rank 0 waits at " + address + " for " + end + ", up to 10s"; line == want {
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

// TestSays: a rank says at once why the run ends: it may save for minutes before its error is shown. One whose output
// is not read has told the others before.
func TestSays(t *testing.T) {
	var said sync.Map
	unread := make(chan struct{})
	errs := together(t, 3, func(c *Config) {
		rank := c.World.Rank
		c.Say = func(line string) {
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
		if text, _ := line.(string); err == nil || !strings.HasPrefix(text, "the run ends: ") ||
			rank < 2 && !strings.Contains(text, "rank 2 ") {
			t.Errorf("rank %d says %q and ends with %v", rank, line, err)
		}
	}
}
