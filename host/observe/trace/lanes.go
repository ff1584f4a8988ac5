package trace

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// lanes are the tracks of a stage: one for each batch that it worked on at the same time.
//
// The host knows how long a plugin worked, but not when within the call. On a busy machine, the host may receive
// several answers late and at once. So a span is placed as late in its call as a track has room for it. That is exact
// if no answer was late; otherwise it avoids unnecessary tracks.
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

// remembered is the number of spans of a lane that are considered. Earlier spans ended before the work of a current
// call.
const remembered = 64

func (l *lanes) add() {
	name := l.name
	if n := len(l.lanes); n > 0 {
		name = fmt.Sprintf("%s (%d)", name, n+1)
	}
	l.lanes = append(l.lanes, lane{track: l.w.Track(pipelineGroup, name, l.place+len(l.lanes))})
}

// span puts the busy time of a call on the first track that has room for it.
func (l *lanes) span(began, ended time.Time, busy time.Duration, args []Arg) {
	if busy = min(busy, ended.Sub(began)); busy <= 0 { // the call failed before the stage started
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

// put finds the last gap of that length between two times, and takes it.
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
