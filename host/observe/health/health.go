// Package health judges by the events of a run whether it makes progress, and whether it trains:
//
//	judge := health.New()
//	judge.Take(events)           // as a sink, or for one
//	line, alive := judge.Alive() // "training, step 120 of 1000; progress 3s ago, limit 5m0s"
//
// docs/monitoring.md has the limits. Probes of package prometheus and the watchdog of package systemd ask a Judge.
package health

import (
	"fmt"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

const (
	// patience is the longest time without progress outside of steps: for a phase or a part of a work, such as a batch
	// of an evaluation, whose usual time is not known. The first compilation of a graph and the first step belong here.
	patience = 30 * time.Minute
	// least is the shortest limit of a step: a plugin that is restarted, or a disk that waits, is no hung run.
	least = 5 * time.Minute
	// multiple of the longest time that the same took before is the limit if that is more.
	multiple = 20
	// recent is the number of steps whose longest counts.
	recent = 20
)

// Judge knows how a run is. It is a sink. All methods are safe for concurrent use.
type Judge struct {
	mu          sync.Mutex
	phase       event.RunPhase
	work        *event.Work // nil if none is under way
	step, total int64
	steps       int                          // of this process
	times       [recent]time.Duration        // of the last steps
	longest     map[event.Task]time.Duration // time of a part of each work
	last        time.Time                    // of the last progress
}

// New returns a Judge of a run that begins now.
func New() *Judge {
	return &Judge{phase: event.Preparing, longest: map[event.Task]time.Duration{}, last: time.Now()}
}

// Take implements event.Sink.
func (j *Judge) Take(events []event.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case *event.Start:
			j.step, j.total = e.Step, e.Total
		case *event.Phase:
			j.phase, j.last = e.Phase, time.Now()
		case *event.Step:
			j.times[j.steps%recent] = e.Time
			j.steps++
			j.step, j.last = e.Step, time.Now()
		case *event.Work:
			j.takeWork(e)
		}
	}
	return nil
}

// takeWork counts the beginning and the end of a work as progress, and what is done of it. A Work that tells the same
// again is none.
func (j *Judge) takeWork(w *event.Work) {
	if now := j.work; now != nil && now.Task == w.Task && now.Began.Equal(w.Began) {
		if w.Done == now.Done && !w.Ended {
			return
		}
		j.longest[w.Task] = max(j.longest[w.Task], time.Since(j.last))
	}
	kept := *w
	if j.last, j.work = time.Now(), &kept; w.Ended {
		j.work = nil
	}
}

// Close implements event.Sink.
func (j *Judge) Close() error { return nil }

// Alive reports whether the run makes progress, and a line that says why. The line names no file, clip or text.
func (j *Judge) Alive() (line string, alive bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	since, limit := time.Since(j.last), j.limit()
	if since <= limit {
		return fmt.Sprintf("%s; progress %v ago, limit %v", j.where(), rounded(since), rounded(limit)), true
	}
	return fmt.Sprintf("no progress for %v, limit %v: %s", rounded(since), rounded(limit), j.where()), false
}

// Ready reports whether the run trains: from its first step to its last one.
func (j *Judge) Ready() (line string, ready bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.where(), j.phase == event.Training && j.steps > 0
}

// limit is the longest time without progress that is usual now.
func (j *Judge) limit() time.Duration {
	switch {
	case j.work != nil:
		return max(patience, multiple*j.longest[j.work.Task])
	case j.phase == event.Training && j.steps > 0:
		longest := least
		for _, t := range j.times {
			longest = max(longest, multiple*t)
		}
		return longest
	}
	return patience
}

// where names the phase, the step and the work under way. The unit of a work is left out: it may name a file.
func (j *Judge) where() string {
	text := string(j.phase)
	if j.total > 0 {
		text += fmt.Sprintf(", step %d of %d", j.step, j.total)
	}
	if w := j.work; w != nil {
		text += ", " + string(w.Task)
		if w.Of > 0 {
			text += fmt.Sprintf(" %d/%d", w.Done, w.Of)
		}
	}
	return text
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }
