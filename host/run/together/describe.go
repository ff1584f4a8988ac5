package together

import (
	"math"
	"os"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/ranks/meet"
)

// Exchange returns the values of all ranks by rank, on all of them; in a run of one process its own.
func Exchange[T any](r *Ranks, mine T) ([]T, error) {
	if r == nil {
		return []T{mine}, nil
	}
	return meet.Exchange(r.Group, mine)
}

// Rows returns the rows of all ranks in a skipped step. It is nil for a run of one process, and if a rank is missing.
func (r *Ranks) Rows(s *event.Step) []event.RankRows {
	if r == nil {
		return nil
	}
	bad := len(s.Rows) > 0 && (math.IsNaN(s.Own) || math.IsInf(s.Own, 0))
	all, err := Exchange(r, event.RankRows{Named: s.Named, Samples: len(s.Rows), Bad: bad})
	if err != nil {
		return nil
	}
	return all
}

// Describe returns what the ranks have measured of themselves, for the report of rank 0. It is nil for a run of one
// process, on the other ranks, and if a rank is missing.
func (r *Ranks) Describe(own *report.Report) []report.Rank {
	if r == nil {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// so all ranks are here before one frees what they share
	ranks, err := Exchange(r, report.RankOf(r.World().Rank, host, own))
	if err != nil || !r.Leads() {
		return nil
	}
	return ranks
}
