package trace

import (
	"testing"
	"time"
)

func TestLanes(t *testing.T) {
	w, _ := create(t)
	l := &lanes{w: w, name: "mel"}
	l.add()
	at := func(n int) time.Time { return w.start.Add(time.Duration(n) * ms) }
	for _, c := range []struct {
		name               string
		began, ended, busy int
		lane, from         int // where it is placed
	}{
		{"alone", 0, 10, 4, 0, 6},
		{"after it", 8, 20, 10, 0, 10},
		{"at the same time", 8, 20, 11, 1, 9},
		{"reported late, done before", 0, 20, 5, 0, 1},
		{"in the gap of the second", 0, 19, 9, 1, 0},
		{"nothing fits", 0, 20, 18, 2, 2},
		{"more than there was", 20, 22, 3, 0, 20},
	} {
		l.span(at(c.began), at(c.ended), time.Duration(c.busy)*ms, nil)
		if c.lane >= len(l.lanes) {
			t.Fatalf("%s: %d tracks", c.name, len(l.lanes))
		}
		var found bool
		for _, s := range l.lanes[c.lane].latest {
			found = found || s.began.Equal(at(c.from))
		}
		if !found {
			t.Errorf("%s: not at %d of track %d: %v", c.name, c.from, c.lane, l.lanes)
		}
	}
	l.span(at(3), at(3), 0, nil) // it failed
	for i := range 10 * remembered {
		l.span(at(30+i), at(31+i), ms, nil)
	}
	if len(l.lanes) != 3 || len(l.lanes[0].latest) != remembered {
		t.Errorf("%d tracks, the first remembers %d spans", len(l.lanes), len(l.lanes[0].latest))
	}
}
