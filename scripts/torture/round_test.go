package main

import (
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"testing"
	"time"
)

// TestRounds: a round depends only on its seed and number, ten have every fault, and sixty every fault in two moments
// or more.
func TestRounds(t *testing.T) {
	points := func(_, rank int, phase string) int {
		if rank > 0 && phase != "copy" && phase != "evaluation" {
			return 0 // the plugins and the checkpoints are those of rank 0
		}
		return 10
	}
	faults, pairs := map[string]bool{}, map[string]map[string]bool{}
	for n := range 60 {
		r := newRound(1, n, points)
		if again := newRound(1, n, points); !reflect.DeepEqual(r, again) {
			t.Fatalf("%v, and again %v", r, again)
		}
		if r.victim >= r.ranks || r.watch >= r.ranks || r.again < 1 || roundRows%r.again != 0 ||
			roundRows%r.ranks != 0 || r.stays() && r.again != r.ranks || points(r.ranks, r.watch, r.phase) == 0 {
			t.Errorf("%v", r)
		}
		if n < 10 {
			faults[r.fault] = true
		}
		if pairs[r.fault] == nil {
			pairs[r.fault] = map[string]bool{}
		}
		pairs[r.fault][r.moment] = true
	}
	if len(faults) != len(roundFaults) {
		t.Errorf("ten rounds have the faults %v", faults)
	}
	for fault, moments := range pairs {
		if len(moments) < 2 {
			t.Errorf("sixty rounds have %s in %v only", fault, moments)
		}
	}
}

// TestProxy: it passes bytes on, holds them, and drops connections.
func TestProxy(t *testing.T) {
	lead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lead.Close()
	p, err := newProxy(lead.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	rank, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer rank.Close()
	zero, err := lead.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	got := make([]byte, 1)
	receive := func(c net.Conn, limit time.Duration) error {
		c.SetReadDeadline(time.Now().Add(limit))
		_, err := io.ReadFull(c, got)
		return err
	}
	for way, late := range [][2]bool{{true, true}, {true, false}, {false, true}} { // from the rank, to it
		release := p.hold(way)
		rank.Write([]byte("r"))
		zero.Write([]byte("z"))
		for i, c := range []net.Conn{zero, rank} {
			if err := receive(c, 100*time.Millisecond); (err != nil) != late[i] {
				t.Errorf("way %d, direction %d, held: %v", way, i, err)
			}
		}
		release()
		for i, c := range []net.Conn{zero, rank} {
			if !late[i] {
				continue
			}
			if err := receive(c, 10*time.Second); err != nil {
				t.Errorf("way %d, direction %d, released: %v", way, i, err)
			}
		}
	}
	p.drop()
	for _, c := range []net.Conn{zero, rank} {
		if err := receive(c, 10*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("dropped: %v", err)
		}
	}
}

// TestTakeRanks: the lines of another rank are those of rank 0, and only earlier ones may be missing. The line of the
// last step is missing if the rank ended in it, and rank 0 had saved it.
func TestTakeRanks(t *testing.T) {
	lead := []string{"1", "2", "3"}
	for _, tt := range []struct {
		name    string
		own     []string
		trained bool
		ok      bool
	}{
		{"all", lead, true, true},
		{"one too few", []string{"1", "3"}, true, true},
		{"the last is missing", []string{"1", "2"}, true, false},
		{"the last is missing, and was not made again", []string{"1", "2"}, false, true},
		{"another", []string{"1", "4", "3"}, true, false},
		{"another order", []string{"2", "1", "3"}, false, false},
	} {
		r := &result{files: map[string][]string{
			"metrics.jsonl": lead, "ranks/1/metrics.jsonl": tt.own, "ranks/1/x": nil,
		}}
		if err := takeRanks(r, tt.trained); (err == nil) != tt.ok || len(r.files) != 1 {
			t.Errorf("%s: %v, %v", tt.name, err, r.files)
		}
	}
}
