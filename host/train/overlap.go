package train

import "time"

// span is a time interval on the host's clock.
type span struct{ began, ended time.Time }

// overlap returns the length of the overlap of two spans.
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

// transfer is the transfer of one batch.
type transfer struct {
	span
	hidden time.Duration
}

// Transfers sums the transfers of batches that were trained or evaluated on, from the first computation on: transfers
// before it cannot overlap. The zero value is none, as on the CPU.
type Transfers struct {
	Batches int
	// Time is the time of the transfers, Hidden the part in which the GPU computed.
	Time, Hidden time.Duration
}

// overlaps finds the part of the transfers that overlapped with computation.
type overlaps struct {
	recent    [64]span   // the last computations, as a ring
	at        int        // index in recent of the next entry to overwrite
	copies    []transfer // those that later work may overlap with
	started   bool       // something was computed
	transfers Transfers
}

// copied adds a transfer.
func (o *overlaps) copied(s span) {
	c := transfer{span: s}
	for _, r := range o.recent {
		c.hidden += c.overlap(r)
	}
	o.copies = append(o.copies, c)
}

// computed adds work, in order: a transfer that ended before the work began overlaps with no later work.
func (o *overlaps) computed(s span) {
	o.recent[o.at%len(o.recent)] = s
	o.at++
	open := o.copies[:0]
	for _, c := range o.copies {
		switch {
		case c.ended.After(s.began):
			if !o.started { // nothing overlaps with earlier transfers
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
