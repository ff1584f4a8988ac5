package trace

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// lanes are the tracks of a stage: as many as it worked on batches at a time.
//
// How long a plugin worked is known, but not when within the call that the host waited for; on a machine whose cores are all
// busy the host may come to several answers late and at once. So a span is put as late in its call as a track has room for it:
// that is where it was when nobody was late, and otherwise there are no more tracks than needed.
type lanes struct {
	w     *Writer
	name  string
	place int

	mu    sync.Mutex // guards the rest
	lanes []lane
}

// lane is a track with its last spans, in the order of time.
type lane struct {
	track  Track
	latest []interval
}

type interval struct{ began, ended time.Time }

// remembered is how many spans of a lane are looked at. What ended before them is not where a call of now had its work.
const remembered = 64

func (l *lanes) add() {
	name := l.name
	if n := len(l.lanes); n > 0 {
		name = fmt.Sprintf("%s (%d)", name, n+1)
	}
	l.lanes = append(l.lanes, lane{track: l.w.Track(road, name, l.place+len(l.lanes))})
}

// span puts the busy time of a call on the first track that has room for it.
func (l *lanes) span(began, ended time.Time, busy time.Duration, args []Arg) {
	if busy = min(busy, ended.Sub(began)); busy <= 0 { // the call failed before the stage got to it
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; ; i++ {
		if i == len(l.lanes) {
			l.add()
		}
		if s, ok := l.lanes[i].put(began, ended, busy); ok {
			l.w.Span(l.lanes[i].track, l.name, s.began, s.ended, args)
			return
		}
	}
}

// put finds the last room of that length between two moments, and takes it.
func (l *lane) put(began, ended time.Time, busy time.Duration) (interval, bool) {
	at := len(l.latest)
	for ; at > 0 && l.latest[at-1].ended.Add(busy).After(ended); at-- {
		if before := l.latest[at-1].began; before.Before(ended) {
			ended = before
		}
	}
	s := interval{ended.Add(-busy), ended}
	if s.began.Before(began) || at == 0 && len(l.latest) == remembered {
		return interval{}, false
	}
	l.latest = slices.Insert(l.latest, at, s)
	if len(l.latest) > remembered {
		l.latest = slices.Delete(l.latest, 0, 1)
	}
	return s, true
}
