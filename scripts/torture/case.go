package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// phases are the points that a run can be struck at, as host/supervise, host/checkpoint and the copier name them.
var phases = []string{
	"start", "handshake", "configure", "attach", "batch", "reply", "copy",
	"checkpoint-begin", "checkpoint-file", "checkpoint-rename", "checkpoint-saved", "drain", "shutdown",
}

// blow is what is done to whom.
type blow struct {
	target string // host or plugin
	signal string
}

var blows = []blow{
	{"plugin", "KILL"}, // the host starts another one
	{"plugin", "STOP"}, // for good: the host must notice by its deadline
	{"host", "KILL"},   // it is resumed
	{"host", "STOP, CONT"},
	{"host", "STOP, KILL"},
}

// fatal reports whether the host does not survive it.
func (b blow) fatal() bool { return b.target == "host" && strings.HasSuffix(b.signal, "KILL") }

// strike is one blow at one point of a run.
type strike struct {
	blow
	phase      string
	occurrence int // of the phase, counted from 1
	// held strikes while the host waits at the point, the others while it goes on to the next.
	held  bool
	delay time.Duration // before the blow
	stop  time.Duration // from STOP to the other signal
	pick  uint32        // which plugin process
	own   bool          // the one that the point is about, if it is about one
	// freeze stops a plugin, too, before the host is killed: it can then not see by itself that the host is gone.
	freeze bool
}

func (s strike) String() string {
	when := "behind"
	if s.held {
		when = "at"
	}
	target := s.target
	if s.freeze {
		target += " with a stopped plugin"
	}
	return fmt.Sprintf("%s the %s %s %s %d", s.signal, target, when, s.phase, s.occurrence)
}

// variant is a kind of run.
type variant struct {
	name string
	args []string
}

var variants = [...]variant{
	{"plain", []string{"--eval-every", "1000"}}, // so at the end only
	{"accumulating", []string{"--accumulate", "2", "--eval-every", "15", "--plugin-workers", "features=2"}},
}

// steps of every run, and those between two checkpoints.
const steps, checkpointEvery = 100, 20

// tortureCase is one broken run. When the first strike kills the host, the resumed run gets the second, if it comes to that
// point; and so on.
type tortureCase struct {
	seed    uint64
	number  int
	variant int
	strikes []strike
}

func (c *tortureCase) String() string {
	var text []string
	for _, s := range c.strikes {
		text = append(text, s.String())
	}
	return fmt.Sprintf("case %d: %s: %s", c.number, variants[c.variant].name, strings.Join(text, "; then "))
}

// newCase draws a case. Phase and blow of the first strike go round, so that a few dozen cases have every pair; points says
// how often an undisturbed run comes to a phase.
func newCase(seed uint64, number int, points func(variant int, phase string) int) *tortureCase {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	c := &tortureCase{seed: seed, number: number, variant: r.IntN(len(variants))}
	draw := func(phase string, b blow) {
		s := strike{blow: b, phase: phase, occurrence: 1 + r.IntN(max(1, points(c.variant, phase)))}
		s.held = r.IntN(2) == 0
		s.delay = time.Duration(r.IntN(3000)) * time.Microsecond
		s.stop = time.Duration(100+r.IntN(200)) * time.Millisecond
		s.pick, s.own = r.Uint32(), r.IntN(4) > 0
		s.freeze = s.fatal() && r.IntN(4) == 0
		switch phase {
		case "batch":
			s.delay /= 2 // a call takes some 2 ms: before it is read, in the midst of it, or just answered
		case "reply", "checkpoint-saved", "shutdown":
			s.held = true // what comes behind is another phase, or the end
		}
		c.strikes = append(c.strikes, s)
	}
	draw(phases[number%len(phases)], blows[number%len(blows)]) // 13 and 5 have no common divisor
	for last := c.strikes[0]; last.fatal() && len(c.strikes) < 3 && r.IntN(3) == 0; last = c.strikes[len(c.strikes)-1] {
		draw(phases[r.IntN(len(phases))], blows[r.IntN(len(blows))])
	}
	return c
}
