package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// phases are the phases of a run in which a fault can be injected, as named by host/stages/supervise,
// host/train/checkpoint and the copier.
var phases = []string{
	"start", "handshake", "configure", "attach", "batch", "reply", "copy",
	"checkpoint-begin", "checkpoint-file", "checkpoint-rename", "checkpoint-saved", "drain", "shutdown",
}

// fault is what happens to a process.
type fault struct {
	target string // host or plugin
	signal string // one signal or two, or noReader
}

var faults = []fault{
	{"plugin", "KILL"}, // the host starts another one
	{"plugin", "STOP"}, // without SIGCONT: the host must notice by its deadline
	{"host", "KILL"},   // it is resumed
	{"host", "STOP, CONT"},
	{"host", "STOP, KILL"},
	{"host", "INT, INT"},   // one request to stop: it saves and is resumed
	{"host", "TERM, TERM"}, // the same
	{"host", "HUP"},
	{"host", "PIPE"},   // changes nothing
	{"host", noReader}, // the reader of its output ends, which changes nothing either
}

// noReader is the fault that is not a signal.
const noReader = "no reader"

// fatal reports whether the fault kills the host.
func (b fault) fatal() bool { return b.target == "host" && strings.HasSuffix(b.signal, "KILL") }

// stops reports whether the fault asks the host to end.
func (b fault) stops() bool {
	return slices.Contains([]string{"INT, INT", "TERM, TERM", "HUP"}, b.signal)
}

// injection is one fault in one phase of a run.
type injection struct {
	fault
	phase      string
	occurrence int // of the phase, counted from 1
	// held injects the fault while the host waits in the phase, otherwise while it continues to the next one.
	held  bool
	delay time.Duration // before the fault
	stop  time.Duration // from STOP to the other signal
	pick  uint32        // selects the plugin process
	own   bool          // the process that the phase is about, if it is about one
	// freeze also stops a plugin before the host is killed, so the plugin cannot notice the end of the host.
	freeze bool
}

func (s injection) String() string {
	when := "after"
	if s.held {
		when = "at"
	}
	target := s.target
	if s.freeze {
		target += " with a stopped plugin"
	}
	return fmt.Sprintf("%s the %s %s %s %d", s.signal, target, when, s.phase, s.occurrence)
}

// kind is a kind of run.
type kind struct {
	name    string
	players bool // of the bundle with two players and state
	args    []string
}

var kinds = [...]kind{
	{"plain", false, []string{"--eval-every", "1000"}}, // so at the end only
	{"accumulating", false, []string{"--accumulate", "2", "--eval-every", "15", "--plugin-workers", "features=2",
		"--adaptive"}},
	{"players", true, []string{"--accumulate", "2", "--eval-every", "5", "--plateau-patience", "1", "--ema", "0.9"}},
}

// The kinds of the runs that are killed again and again: each gets on by few steps at a time.
var oftenSaved = [...]kind{
	{"often saved", false, []string{"--eval-every", "1000", "--checkpoint-every", "2"}},
	{"often saved, players", true, []string{
		"--eval-every", "5", "--checkpoint-every", "2", "--plateau-patience", "1", "--ema", "0.9",
	}},
}

// The steps of every run, and the steps between two checkpoints.
const steps, checkpointEvery = 100, 20

// tortureCase is one disturbed run. If the first fault kills the host, the resumed run gets the second one, if it
// reaches that phase; and so on.
type tortureCase struct {
	seed       uint64
	number     int
	kind       int
	injections []injection
}

func (c *tortureCase) String() string {
	var text []string
	for _, s := range c.injections {
		text = append(text, s.String())
	}
	return fmt.Sprintf("case %d: %s: %s", c.number, kinds[c.kind].name, strings.Join(text, "; then "))
}

// newCase draws a case. Phase and fault of the first injection rotate, so a few dozen cases cover every pair. points
// returns how often an undisturbed run reaches a phase.
func newCase(seed uint64, number int, points func(kind int, phase string) int) *tortureCase {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	c := &tortureCase{seed: seed, number: number, kind: r.IntN(len(kinds))}
	draw := func(phase string, b fault) {
		s := injection{fault: b, phase: phase, occurrence: 1 + r.IntN(max(1, points(c.kind, phase)))}
		s.held = r.IntN(2) == 0
		s.delay = time.Duration(r.IntN(3000)) * time.Microsecond
		s.stop = time.Duration(100+r.IntN(200)) * time.Millisecond
		if s.stops() {
			s.stop /= 10
		}
		s.pick, s.own = r.Uint32(), r.IntN(4) > 0
		s.freeze = s.fatal() && r.IntN(4) == 0
		switch phase {
		case "batch":
			// a call takes about 2 ms: the fault hits before it is read, during it, or just after the answer
			s.delay /= 2
		case "reply", "checkpoint-saved", "shutdown":
			s.held = true // the next point is another phase, or the end
		}
		c.injections = append(c.injections, s)
	}
	draw(phases[number%len(phases)], faults[number%len(faults)]) // 13 and 10 have no common divisor
	for last := c.injections[0]; (last.fatal() || last.stops()) && len(c.injections) < 3 &&
		r.IntN(3) == 0; last = c.injections[len(c.injections)-1] {
		draw(phases[r.IntN(len(phases))], faults[r.IntN(len(faults))])
	}
	return c
}
