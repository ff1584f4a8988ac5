package meet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/ranks/proof"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// free returns an address of this machine that no one listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// config is that of a rank of a test.
func config(rank, size int, address string) Config {
	return Config{
		World: world.World{Rank: rank, Size: size}, Address: address, Secret: "secret of the test",
		Wait: 10 * time.Second, Silence: 10 * time.Second,
	}
}

// together joins ranks in goroutines and calls do for each.
func together(t *testing.T, size int, change func(*Config), do func(g *Group) error) []error {
	t.Helper()
	address, errs := free(t), make([]error, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			c := config(rank, size, address)
			if change != nil {
				change(&c)
			}
			g, err := Join(t.Context(), c)
			if err == nil {
				err = do(g)
				err = errors.Join(err, g.Close(err))
			}
			errs[rank] = err
		})
	}
	all.Wait()
	if l, err := net.Listen("tcp", address); err != nil {
		t.Errorf("a port is left: %v", err)
	} else {
		l.Close()
	}
	return errs
}

func ok(t *testing.T, errs []error) {
	t.Helper()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestValues: every call gives every rank what it should, many times in a row.
func TestValues(t *testing.T) {
	ok(t, together(t, 3, nil, func(g *Group) error {
		rank := g.World().Rank
		for i := range 50 {
			mine := fmt.Appendf(nil, "%d of %d", rank, i)
			all, err := g.All(mine)
			if err != nil {
				return err
			}
			for r, got := range all {
				if string(got) != fmt.Sprintf("%d of %d", r, i) {
					return fmt.Errorf("rank %d has %q", r, got)
				}
			}
			if got, err := g.Share(mine); err != nil || string(got) != fmt.Sprintf("0 of %d", i) {
				return fmt.Errorf("shared %q, %v", got, err)
			}
			if got, err := g.Gather(mine); err != nil || (len(got) == 3) != (rank == 0) {
				return fmt.Errorf("gathered %q, %v", got, err)
			}
			if err := g.Barrier(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestReduce: more pieces than a rank may send ahead, of different sizes, are combined in the order of the ranks.
func TestReduce(t *testing.T) {
	const n = 3*ahead + 1
	ok(t, together(t, 4, nil, func(g *Group) error {
		var memory [n][]byte
		for i := range memory {
			memory[i] = slices.Repeat([]byte{byte('a' + g.World().Rank)}, 4+i)
		}
		err := g.Reduce(n, func(i int) []byte { return memory[i] }, func(i int, all [][]byte) {
			var order []byte
			for _, own := range all {
				order = append(order, own[len(own)-1])
			}
			copy(all[0], order)
		})
		for i, m := range memory {
			if string(m[:4]) != "abcd" || len(m) > 4 && m[4] != 'a' {
				err = errors.Join(err, fmt.Errorf("piece %d is %q", i, m))
			}
		}
		return err
	}))
}

// TestOrder: a rank that makes another call than the others is named.
func TestOrder(t *testing.T) {
	errs := together(t, 2, nil, func(g *Group) error {
		if g.World().Rank == 1 {
			g.seq++
		}
		return g.Barrier()
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "at another point of the run") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestNotes: rank 0 has a note before the value that the same rank sends after it.
func TestNotes(t *testing.T) {
	var mu sync.Mutex
	noted := map[int]int{}
	ok(t, together(t, 3, func(c *Config) {
		c.Noted = func(rank int, data []byte) {
			mu.Lock()
			defer mu.Unlock()
			if got := int(binary.LittleEndian.Uint32(data)); got != noted[rank] {
				t.Errorf("rank %d: note %d after %d", rank, got, noted[rank])
			}
			noted[rank]++
		}
	}, func(g *Group) error {
		for i := range 100 {
			if err := g.Note(binary.LittleEndian.AppendUint32(nil, uint32(i))); err != nil {
				return err
			}
			if err := g.Barrier(); err != nil {
				return err
			}
			mu.Lock()
			if g.World().Leads() && (noted[1] <= i || noted[2] <= i) {
				t.Errorf("at %d: %v", i, noted)
			}
			mu.Unlock()
		}
		return nil
	}))
}

// TestAgree: what differs is named with both values, on every rank, as a refusal.
func TestAgree(t *testing.T) {
	errs := together(t, 3, nil, func(g *Group) error {
		facts := map[string]string{"graph": "abc", "seed": "1"}
		if g.World().Rank == 2 {
			facts["seed"], facts["extra"] = "2", "x"
		}
		return g.Agree(facts)
	})
	const want = "rank 2 differs from rank 0: extra (x) is not set on rank 0; seed is 2, not 1"
	for rank, err := range errs {
		if err == nil || !strings.HasPrefix(err.Error(), want) || exit.Code(err) != exit.StatusRefused {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestDifferences: it is said on which of the two ranks a fact is not set, and how many more differ than are named.
func TestDifferences(t *testing.T) {
	lead := map[string]string{"a": "1", "b": "", "same": "5"}
	for _, c := range []struct {
		own  map[string]string
		want string
	}{
		{map[string]string{"b": "", "same": "5"}, "a (1) is not set on rank 4"},
		{map[string]string{"a": "1", "same": "5"}, "b (empty) is not set on rank 4"},
		{map[string]string{"a": "", "b": "2", "same": "5"}, "a is empty, not 1; b is 2, not empty"},
		{map[string]string{"a": "2", "b": "", "c": "3", "same": "6"}, "a is 2, not 1; c (3) is not set on rank 0; " +
			"same is 6, not 5"},
		{map[string]string{"a": "2", "b": "2", "c": "3", "d": "4", "same": "6"}, "a is 2, not 1; b is 2, not empty; " +
			"c (3) is not set on rank 0; and 2 more"},
	} {
		if got := differences(4, lead, c.own); got != c.want {
			t.Errorf("%v: %q, want %q", c.own, got, c.want)
		}
	}
}

// TestStrangers: who does not know the secret gets nothing, and does not keep the ranks from joining.
func TestStrangers(t *testing.T) {
	address := free(t)
	var said []string
	var mu sync.Mutex
	var ranks sync.WaitGroup
	lead := config(0, 2, address)
	lead.Say = func(line string) { mu.Lock(); said = append(said, line); mu.Unlock() }
	ranks.Go(func() {
		g, err := Join(t.Context(), lead)
		if err != nil {
			t.Error(err)
			return
		}
		if err := g.Barrier(); err != nil {
			t.Error(err)
		}
		g.Close(nil)
	})
	stranger := config(1, 2, address)
	stranger.Secret = "another"
	if _, err := Join(t.Context(), stranger); err == nil || exit.Code(err) != exit.StatusRefused ||
		!strings.Contains(err.Error(), "secret") {
		t.Errorf("another secret: %v", err)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 400), ""} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(text))
		conn.(*net.TCPConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		got := make([]byte, 1000)
		n, _ := conn.Read(got)
		if n > len(greeting)+proof.NonceBytes {
			t.Errorf("%q got %q", text, got[:n])
		}
		conn.Close()
	}
	g, err := Join(t.Context(), config(1, 2, address))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Barrier(); err != nil {
		t.Error(err)
	}
	g.Close(nil)
	ranks.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(said) < 3 || !strings.Contains(said[0], proof.ErrStranger.Error()) {
		t.Errorf("said %q", said)
	}
}

// TestImpostor: a rank does not go on with a rank 0 that does not know the secret.
func TestImpostor(t *testing.T) {
	for _, answers := range []string{"S", "something else that listens here, and is long enough to be a greeting",
		greeting + strings.Repeat("n", proof.NonceBytes) + strings.Repeat("p", 40)} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err == nil {
				conn.Write([]byte(answers))
				conn.(*net.TCPConn).CloseWrite()
			}
		}()
		if _, err := Join(t.Context(), config(1, 2, l.Addr().String())); exit.Code(err) != exit.StatusRefused {
			t.Errorf("%q: %v", answers, err)
		}
		l.Close()
	}
}

// TestOtherWorld: a rank of another number of ranks is refused.
func TestOtherWorld(t *testing.T) {
	address := free(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go Join(ctx, config(0, 2, address))
	if _, err := Join(t.Context(), config(1, 3, address)); err == nil ||
		!strings.Contains(err.Error(), "it is rank 1 of 3, and rank 0 is one of 2") {
		t.Errorf("rank 1: %v", err)
	}
}

// TestFaultyMessages: what a rank could send by a fault of its own ends the group with an error.
func TestFaultyMessages(t *testing.T) {
	long := []byte{byte(value), 0, 0, 0, 0, 255, 255, 255, 255}
	for want, message := range map[string][]byte{
		"of kind 9": {9, 0, 0, 0, 0, 0, 0, 0, 0}, "rank 1": long,
		"another point": {byte(value), 7, 0, 0, 0, 0, 0, 0, 0},
	} {
		errs := together(t, 2, nil, func(g *Group) error {
			if g.World().Rank == 1 {
				g.peers[0].conn.Write(message)
				<-g.Lost()
				return g.Err()
			}
			_, err := g.All(nil)
			return err
		})
		if errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%x: %v", message, errs[0])
		}
	}
}
