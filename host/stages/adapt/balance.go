package adapt

import "fmt"

// Group is workers of which any can take a batch: the decoders, or the processes of a plugin.
type Group struct {
	Name    string
	Workers int
	// Most is the largest number of workers. A group whose number cannot change has Fixed.
	Most  int
	Fixed bool
	// Busy is the mean time, in seconds, that workers of the group work on a batch, Queue the time that a batch waits
	// for one.
	Busy, Queue float64
}

// each is the time between two batches of the group while all its workers work.
func (g *Group) each() float64 { return g.Busy / float64(g.Workers) }

// Move gives a group one worker more, and takes one from another group.
type Move struct {
	To, From int // indices of groups, -1 for none
	Why      string
}

// The limits of Balance.
const (
	queued = 0.1  // of the work on a batch: the wait for a turn from which on batches queue
	spare  = 0.7  // largest share of time in which the workers of a group that gives one away then work
	gained = 0.95 // of a time before a move: that after it, at which the move was of use
	full   = 0.9  // of the cores' time: that of the run, from which on one more worker would only share them
)

// Balance moves workers between groups. The zero value is ready for use.
type Balance struct {
	// Total is the largest number of workers of all groups together.
	Total int

	tried   *Move
	before  float64      // time between two batches before it
	each    float64      // time that the group which got a worker needed for a batch before it
	useless map[int]bool // groups that gained nothing by a worker
}

// Next decides about the groups of a pipeline, or returns nil. It moves one worker at a time: when the pipeline limits
// the run, to the group that batches queue for, from the group that has most workers to spare. A move after which the
// time between batches is not at least 5 % shorter is taken back, and not tried again. So is one after which the group
// is not at least 5 % faster: its workers share the cores. While the run takes all cores, none gets a worker. The
// caller calls Next when the numbers of workers are those of the last move, and m has been measured with them alone, at
// one depth.
func (b *Balance) Next(groups []Group, m Measured) *Move {
	if !m.known() {
		return nil
	}
	if move := b.tried; move != nil {
		b.tried = nil
		useful := m.Ready.Mean <= gained*b.before && groups[move.To].each() <= gained*b.each
		if !useful && m.limits() {
			if b.useless == nil {
				b.useless = map[int]bool{}
			}
			b.useless[move.To] = true
			return &Move{move.From, move.To, "one more was of no use"}
		}
	}
	if !m.limits() || m.Cores >= full {
		return nil
	}
	to := b.limiting(groups)
	if to < 0 {
		return nil
	}
	move := &Move{To: to, From: -1, Why: fmt.Sprintf("batches wait %.1f ms for %s, and the trainer for batches",
		1000*groups[to].Queue, groups[to].Name)}
	all := 0
	for _, g := range groups {
		all += g.Workers
	}
	if all >= b.Total {
		if move.From = donor(groups, to, m.Ready.Mean); move.From < 0 {
			return nil
		}
	}
	b.tried, b.before, b.each = move, m.Ready.Mean, groups[to].each()
	return move
}

// limiting returns the group that batches queue for, or -1 if there is none that can get a worker.
func (b *Balance) limiting(groups []Group) int {
	to, busiest := 0, 0.0
	for i, g := range groups {
		busiest = max(busiest, g.Busy)
		if g.Queue > groups[to].Queue {
			to = i
		}
	}
	g := groups[to]
	if g.Queue <= queued*busiest || g.Fixed || g.Workers >= g.Most || b.useless[to] {
		return -1
	}
	return to
}

// donor returns the group that can best do with one worker less, or -1. interval is the time between two batches.
func donor(groups []Group, to int, interval float64) int {
	from, least := -1, spare
	for i, g := range groups {
		if i == to || g.Fixed || g.Workers < 2 {
			continue
		}
		if share := g.Busy / interval / float64(g.Workers-1); share <= least {
			from, least = i, share
		}
	}
	return from
}
