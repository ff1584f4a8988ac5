package together

import (
	"encoding/json"
	"os"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

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
	data, err := json.Marshal(report.RankOf(r.World().Rank, host, own))
	if err != nil {
		data = []byte("{}") // a figure is no number; rank 0 waits for an answer
	}
	all, err := r.All(data) // all ranks are here before one frees what they share
	if err != nil || !r.Leads() {
		return nil
	}
	var ranks []report.Rank
	for _, data := range all {
		var rank report.Rank
		if json.Unmarshal(data, &rank) != nil {
			return nil
		}
		ranks = append(ranks, rank)
	}
	return ranks
}
