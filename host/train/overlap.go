package train

import "time"

// span is from one moment to another, on the host's clock.
type span struct{ began, ended time.Time }

// overlap returns how long two spans last at the same time.
func (s span) overlap(o span) time.Duration {
	return max(0, earlier(s.ended, o.ended).Sub(later(s.began, o.began)))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// transfer is the copy of one batch.
type transfer struct {
	span
	hidden time.Duration
}

// Transfers sums up the copies of batches that were trained or evaluated on, without what lies before the first computation,
// which nothing can hide. The zero value is none, as on the CPU.
type Transfers struct {
	Batches int
	// Time is that of the copies, Hidden the part of it in which the GPU computed.
	Time, Hidden time.Duration
}

// overlaps finds how much of the transfers was hidden by computation.
type overlaps struct {
	recent    [64]span   // what was computed last, as a ring
	at        int        // in recent: the next to be overwritten
	copies    []transfer // those that work may still overlap with
	started   bool       // something was computed
	transfers Transfers
}

// copied adds a copy.
func (o *overlaps) copied(s span) {
	c := transfer{span: s}
	for _, r := range o.recent {
		c.hidden += c.overlap(r)
	}
	o.copies = append(o.copies, c)
}

// computed adds work, in the order in which it was done: a copy that ended before it began overlaps with no later work.
func (o *overlaps) computed(s span) {
	o.recent[o.at%len(o.recent)] = s
	o.at++
	open := o.copies[:0]
	for _, c := range o.copies {
		switch {
		case c.ended.After(s.began):
			if !o.started { // nothing could hide what is before it
				c.began = later(c.began, s.began)
			}
			c.hidden += c.overlap(s)
			open = append(open, c)
		case o.started:
			o.transfers.Batches++
			o.transfers.Time += c.ended.Sub(c.began)
			o.transfers.Hidden += c.hidden
		}
	}
	o.copies, o.started = open, true
}
