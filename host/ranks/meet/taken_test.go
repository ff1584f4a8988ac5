package meet

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// refusedAtOnce fails unless a second process as rank 1 of three is refused at once, with its rank and what to do.
func refusedAtOnce(t *testing.T, when string, c Config, want string) {
	t.Helper()
	began := time.Now()
	_, err := Join(t.Context(), c)
	if exit.Code(err) != exit.StatusRefused || !strings.Contains(err.Error(), want) ||
		!strings.HasPrefix(hint.Of(err), "each process has a RANK of its own, from 0 to 2") {
		t.Errorf("%s: %v (%s)", when, err, hint.Of(err))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%s: refused after %v", when, took)
	}
}

// TestTaken: the second process of a rank is refused at once, before rank 0 comes, while the ranks join, and after
// that; the first one goes on. On another machine, which this one is by another name, rank 0 refuses it. A rank whose
// process has left can be taken again.
func TestTaken(t *testing.T) {
	address := free(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprintf("rank 1 of the run at %s is taken by process %d of this machine", address, os.Getpid())
	joined, said := make(chan int, 3), make(chan string, 100)
	left := make(chan struct{})
	var all sync.WaitGroup
	join := func(c Config) {
		all.Go(func() {
			g, err := Join(t.Context(), c)
			if err != nil {
				t.Errorf("rank %d: %v", c.World.Rank, err)
				return
			}
			joined <- c.World.Rank
			<-left
			if err := g.Close(nil); err != nil {
				t.Errorf("rank %d: %v", c.World.Rank, err)
			}
		})
	}
	join(config(1, 3, address))
	for { // until it is there
		l, err := (&Config{World: config(1, 3, address).World, Address: address, Secret: "secret of the test"}).take()
		if err != nil {
			break
		}
		letGo(l)
		time.Sleep(time.Millisecond)
	}
	refusedAtOnce(t, "before rank 0 comes", config(1, 3, address), here)
	lead := config(0, 3, address)
	lead.Say = func(line string) { said <- line }
	join(lead)
	time.Sleep(500 * time.Millisecond) // rank 1 tries to reach it five times a second
	refusedAtOnce(t, "while the ranks join", config(1, 3, address), here)
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := config(1, 3, "localhost:"+port)
	refusedAtOnce(t, "on another machine", elsewhere, "refuses this process: rank 1 is taken by a process on "+name)
	if line := <-said; line != "refused a second rank 1, on "+name {
		t.Errorf("rank 0 says %q", line)
	}
	join(config(2, 3, address))
	for range 3 {
		<-joined
	}
	refusedAtOnce(t, "after all have joined", config(1, 3, address), here)
	close(left)
	all.Wait()
	l, err := (&Config{World: config(1, 3, address).World, Address: address, Secret: "secret of the test"}).take()
	if err != nil || l == nil {
		t.Errorf("after the end: %v", err)
	}
	letGo(l)
}
