package report

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestAdaptive: the report has the depths, what they took, and the last changes of all numbers.
func TestAdaptive(t *testing.T) {
	for _, tt := range []struct {
		returns  bool
		reserved int64
	}{{true, 12 << 20}, {false, 50 << 20}} {
		c := NewCollector(nil, Before{})
		for i, to := range []int{4, 12, 9} {
			c.Take(events(&event.Adapted{Step: int64(16*i + 17), What: event.Depth, From: 2, To: to, Why: "a reason"}))
		}
		c.Take(events(&event.Adapted{Step: 65, What: "mix", From: 1, To: 20, Why: "another"}))
		r := Report{Adaptive: AdaptiveFrom(2, 50, 1<<20, tt.returns)}
		c.Complete(&r, Measured{})
		a := r.Adaptive
		if a.Depth.First != 2 || a.Depth.Last != 9 || a.Depth.Largest != 12 || a.Depth.Limit != 50 ||
			a.ReservedBytes != tt.reserved || a.LimitBytes != 50<<20 || a.Changes != 4 || len(a.List) != 4 ||
			a.List[3] != (AdaptedEntry{65, "mix", 1, 20, "another"}) {
			t.Errorf("%+v", a)
		}
		if text := r.Table("x"); !strings.Contains(text, "  adaptive        9 batches ahead at the end, 12 at most "+
			"(limit 50), ") {
			t.Error(text)
		}
		for range 200 {
			c.Take(events(&event.Adapted{Step: 99, What: event.Decoders, From: 2, To: 1}))
		}
		if c.Complete(&r, Measured{}); a.Changes != 204 || len(a.List) != mostAdapted || a.List[0].Step != 99 {
			t.Errorf("%d changes, of which %d are listed", a.Changes, len(a.List))
		}
	}
	r := Report{Adaptive: AdaptiveFrom(2, 50, 1<<20, true)}
	NewCollector(nil, Before{}).Complete(&r, Measured{})
	if a := r.Adaptive; a.Depth.Last != 2 || a.Depth.Largest != 2 || a.ReservedBytes != 2<<20 || a.List == nil {
		t.Errorf("nothing has changed: %+v", a)
	}
}
