package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// byRound is the target of a fault of a round, which may be several processes or a connection.
const byRound = "ranks"

// What happens to the ranks of a run.
const (
	killed     = "kill a rank"
	terminated = "end a rank with SIGTERM"
	paused     = "stop a rank for seconds"
	frozen     = "freeze a connection"
	plugin     = "kill a plugin"
	leadKilled = "kill rank 0"
	dropped    = "drop a connection"
	allEnded   = "end all ranks with SIGTERM"
	held       = "hold a connection for a second"
	unjoined   = "kill a rank before it has joined"
)

// roundFaults rotate.
var roundFaults = []string{
	killed, terminated, paused, frozen, plugin, leadKilled, dropped, allEnded, held, unjoined,
}

// moments are the parts of a run, and the phases in which a fault hits them.
var moments = []struct {
	name   string
	phases []string
}{
	{"a step", []string{"batch", "reply", "copy"}},
	{"a checkpoint", []string{"checkpoint-begin", "checkpoint-file", "checkpoint-rename", "checkpoint-saved"}},
	{"the start", []string{"start", "handshake", "configure", "attach"}},
	{"an evaluation", []string{"evaluation"}},
}

// roundRows are the rows of a step of all ranks: 1 to 4 ranks can share them.
const roundRows = 12

// The steps of a run of several ranks.
const roundSteps = 24

// round is a disturbed run of several ranks, which are then started again.
type round struct {
	seed   uint64
	number int
	ranks  int
	again  int // the number of ranks that go on
	fault  string
	victim int
	moment string
	watch  int // the rank that reaches the phase
	injection
	way int // of a connection: both, from the victim, to the victim
}

func (r *round) String() string {
	what := fmt.Sprintf("%s: rank %d of %d", r.fault, r.victim, r.ranks)
	if r.fault != unjoined {
		what += fmt.Sprintf(", in %s (%s %d of rank %d)", r.moment, r.phase, r.occurrence, r.watch)
	}
	return fmt.Sprintf("round %d: %s; %d go on", r.number, what, r.again)
}

// stays reports whether the run must go on as if nothing had happened.
func (r *round) stays() bool { return slices.Contains([]string{paused, plugin, held}, r.fault) }

// network reports whether the fault is one of connections.
func (r *round) network() bool { return slices.Contains([]string{frozen, dropped, held}, r.fault) }

// newRound draws a round. Faults and moments rotate. points returns how often a rank of an undisturbed run reaches a
// phase; rank 0 reaches all.
func newRound(seed uint64, number int, points func(ranks, rank int, phase string) int) *round {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	o := &round{seed: seed, number: number, ranks: 2 + r.IntN(3), fault: roundFaults[number%len(roundFaults)]}
	o.victim, o.again, o.way = r.IntN(o.ranks), o.ranks, r.IntN(3)
	if o.fault == leadKilled {
		o.victim = 0
	}
	if r.IntN(3) == 0 && !o.stays() {
		o.again = 1 + r.IntN(4)
	}
	moment := moments[(number+number/len(roundFaults))%len(moments)]
	o.moment, o.phase = moment.name, moment.phases[r.IntN(len(moment.phases))]
	o.watch = o.victim
	if points(o.ranks, o.watch, o.phase) == 0 {
		o.watch = 0 // it writes the checkpoints, and has the plugins of all
	}
	if o.fault == plugin {
		o.watch, o.victim = 0, 0
	}
	o.injection = injection{
		fault: fault{byRound, ""}, phase: o.phase, occurrence: 1 + r.IntN(max(1, points(o.ranks, o.watch, o.phase))),
		held: r.IntN(2) == 0, delay: time.Duration(r.IntN(3000)) * time.Microsecond, pick: r.Uint32(),
	}
	switch o.fault {
	case plugin:
		o.injection.fault = fault{"plugin", "KILL"}
	case paused:
		o.stop = time.Duration(1500+r.IntN(2500)) * time.Millisecond
	case unjoined:
		o.delay = time.Duration(r.IntN(60)) * time.Millisecond
	}
	return o
}

// kills reports whether the fault kills the victim.
func (r *round) kills() bool { return slices.Contains([]string{killed, leadKilled, unjoined}, r.fault) }

// expects returns an error if a rank has not ended as it should after the fault. It has made so many steps.
func (r *round) expects(rank, steps int, m *member) error {
	var want []int
	switch r.fault {
	case paused, plugin, held:
		want = []int{0}
	case terminated, allEnded:
		if want = []int{130}; r.moment == "the start" && rank != r.victim {
			want = append(want, 6) // the one that is asked to stop has nothing to agree on with the others yet
		}
	case unjoined:
		want = []int{130, 6, 2} // 2: rank 0 ended in the handshake, as it does with a rank of another secret
	default:
		want = []int{6}
	}
	if steps == roundSteps {
		want = append(want, 0) // it had all that it needs of the others
	}
	if r.fault == unjoined && m.status().Signaled() { // it did not get as far as to catch a signal
		return nil
	}
	if r.kills() && rank == r.victim {
		if m.status().Signaled() || steps == roundSteps && m.exited(0) {
			return nil
		}
	} else if m.exited(want...) {
		return nil
	}
	return fmt.Errorf("%w, expected of it: %v", m.unexpected(rank), want)
}
