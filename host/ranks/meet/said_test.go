package meet

import (
	"strings"
	"sync"
	"testing"
)

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
