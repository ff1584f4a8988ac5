package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// Rank is what one of the processes of a run has measured of itself. The steps of all ranks take the same time, because
// they wait for each other: InputStallRatio and PhasesMs show the one for which the others wait.
type Rank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"` // the name of the machine
	Device string `json:"device"`
	// InputStallRatio, StepMs, PhasesMs and Memory are those of a Report.
	InputStallRatio float64  `json:"input_stall_ratio"`
	StepMs          float64  `json:"step_ms"` // mean
	PhasesMs        Phases   `json:"phases_ms"`
	Memory          []Memory `json:"memory"`
}

// Process is one of so many ranks.
type Process struct {
	Rank int `json:"rank"`
	Of   int `json:"of"`
}

// RankOf takes from the report of a process what describes it as a rank.
func RankOf(rank int, host string, r *Report) Rank {
	return Rank{
		Rank: rank, Host: host, Device: r.Device, InputStallRatio: r.InputStallRatio, StepMs: r.StepMs.Mean,
		PhasesMs: r.PhasesMs, Memory: r.Memory,
	}
}

// ranks has a row for each rank.
func (t *table) ranks(all []Rank) {
	for _, r := range all {
		parts := []string{
			"step " + units.Milliseconds(r.StepMs), "input stall " + units.Percent(r.InputStallRatio),
		}
		for _, p := range r.PhasesMs {
			if p.Name == "decode" {
				parts = append(parts, "decode "+units.Milliseconds(p.Ms)+" per batch")
			}
		}
		for _, m := range r.Memory {
			if m.ProcessPeakBytes > 0 {
				parts = append(parts, units.Size(m.ProcessPeakBytes))
				break
			}
		}
		t.row(fmt.Sprint("rank ", r.Rank), fmt.Sprintf("%s, %s: %s", r.Host, r.Device, strings.Join(parts, ", ")))
	}
}

// stallingShare is the share of the time from which on a rank that waits for its input is named as a straggler.
const stallingShare = 0.01

// straggler returns advice about a rank that waits for its input, and has the others wait; "" if there is none.
func straggler(all []Rank) string {
	worst := -1
	for i, r := range all {
		if r.InputStallRatio >= stallingShare && (worst < 0 || r.InputStallRatio > all[worst].InputStallRatio) {
			worst = i
		}
	}
	if worst < 0 {
		return ""
	}
	r := all[worst]
	return fmt.Sprintf("All ranks wait for rank %d on %s, whose batches are not ready in %s of the time: give it more "+
		"--num-workers or --plugin-workers, or prepare the features (data prepare).", r.Rank, r.Host,
		units.Percent(r.InputStallRatio))
}
