package report

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Adaptive describes what --adaptive has changed in this process.
type Adaptive struct {
	// Depth is the number of batches that were prepared ahead: in the beginning, at the end, and the largest one. Limit
	// is the largest that was allowed.
	Depth struct {
		First   int `json:"first"`
		Last    int `json:"last"`
		Largest int `json:"largest"`
		Limit   int `json:"limit"`
	} `json:"depth"`
	// ReservedBytes is the largest memory of the ring that was reserved, and LimitBytes what Limit would have taken.
	ReservedBytes int64 `json:"reserved_bytes"`
	LimitBytes    int64 `json:"limit_bytes"`
	// Changes counts the changes of all numbers. List has the last ones.
	Changes int            `json:"changes"`
	List    []AdaptedEntry `json:"list"`
}

// AdaptedEntry is a change.
type AdaptedEntry struct {
	Step int64  `json:"step"`
	What string `json:"what"` // "depth", "decode", or the name of a plugin
	From int    `json:"from"`
	To   int    `json:"to"`
	Why  string `json:"why"`
}

// mostAdapted is the number of changes that a report lists.
const mostAdapted = 100

// AdaptiveFrom returns a report of a ring of up to limit slots, of so many bytes each, of which first are used in the
// beginning. returns says that slots that are not used take no memory.
func AdaptiveFrom(first, limit, slotBytes int, returns bool) *Adaptive {
	a := new(Adaptive)
	a.Depth.First, a.Depth.Limit, a.LimitBytes = first, limit, int64(limit)*int64(slotBytes)
	if a.ReservedBytes = a.LimitBytes; returns {
		a.ReservedBytes = int64(first) * int64(slotBytes)
	}
	return a
}

// adapted collects changes.
type adapted struct {
	changes int
	list    []AdaptedEntry
	last    int // depth; 0: it has not changed
	most    int
}

func (a *adapted) add(e *event.Adapted) {
	if a.changes++; len(a.list) == mostAdapted {
		a.list = append(a.list[:0], a.list[1:]...)
	}
	a.list = append(a.list, AdaptedEntry{e.Step, e.What, e.From, e.To, e.Why})
	if e.What == event.Depth {
		a.last, a.most = e.To, max(a.most, e.To)
	}
}

// complete fills in what has changed.
func (a *adapted) complete(r *Adaptive) {
	if r == nil {
		return
	}
	d := &r.Depth
	d.Last, d.Largest = d.First, max(d.First, a.most)
	if a.last > 0 {
		d.Last = a.last
	}
	if r.ReservedBytes < r.LimitBytes {
		r.ReservedBytes = r.LimitBytes / int64(d.Limit) * int64(d.Largest)
	}
	r.Changes, r.List = a.changes, listOf(a.list)
}

// adaptive writes the row of what has changed.
func (t *table) adaptive(a *Adaptive) {
	if a == nil {
		return
	}
	t.row("adaptive", fmt.Sprintf("%s ahead at the end, %d at most (limit %d), %s of the ring; %s",
		units.Count(a.Depth.Last, "batch"), a.Depth.Largest, a.Depth.Limit, units.Size(a.ReservedBytes),
		units.Count(a.Changes, "change")))
}
