package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// Rank is what one of the processes of a run has measured of itself. The steps of all ranks take the same time, because
// they wait for each other: OwnMs, InputStallRatio and PhasesMs show the one for which the others wait.
type Rank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"` // the name of the machine
	Device string `json:"device"`
	// OwnMs is the mean of what a step takes before its update: the wait for the batch, and the gradients. Where the
	// training graph sums them, it includes the wait for the other ranks.
	OwnMs float64 `json:"own_ms"`
	// InputStallRatio, StepMs, PhasesMs and Memory are those of a Report.
	InputStallRatio float64  `json:"input_stall_ratio"`
	StepMs          float64  `json:"step_ms"` // mean, with the wait for the others
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
	own := r.GradientsMs.Mean
	for _, p := range r.PhasesMs {
		if p.Name == "wait" {
			own += p.Ms
		}
	}
	return Rank{
		Rank: rank, Host: host, Device: r.Device, OwnMs: own, InputStallRatio: r.InputStallRatio, StepMs: r.StepMs.Mean,
		PhasesMs: r.PhasesMs, Memory: r.Memory,
	}
}

// AddRanks fills in what all ranks have measured, which is known after everything else of the report, and the advice
// about the one for which the others wait. A run of one process has no ranks.
func (r *Report) AddRanks(all []Rank) {
	r.Ranks = all
	if r.Verdict.Diverged { // how fast it was does not matter
		return
	}
	steps := r.StepMs.Steps // of this process
	if r.StepMs.FirstStepExcluded {
		steps++
	}
	if advice := straggler(all, steps); advice != "" {
		r.Verdict.Advice = append(r.Verdict.Advice, advice)
	}
}

// ranks has a row for each rank.
func (t *table) ranks(all []Rank) {
	for _, r := range all {
		parts := []string{
			"step " + units.Milliseconds(r.StepMs) + ", of which its own part " + units.Milliseconds(r.OwnMs),
			"input stall " + units.Percent(r.InputStallRatio),
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

// stallingShare is the share of the time from which on a rank that waits for its input is named as a straggler, and
// slowerShare that of a step by which its own part may be longer than that of another.
const stallingShare, slowerShare = 0.01, 0.1

// leastSteps is the number of steps from which on the parts of ranks are compared: in a shorter run, single long steps,
// as the first ones are, decide whose mean is larger.
const leastSteps = 50

// straggler returns advice about a rank that has had the others wait in so many steps, first because it waits for its
// input; "" if there is none.
func straggler(all []Rank, steps int64) string {
	worst := -1
	for i, r := range all {
		if r.InputStallRatio >= stallingShare && (worst < 0 || r.InputStallRatio > all[worst].InputStallRatio) {
			worst = i
		}
	}
	if worst < 0 && steps < leastSteps {
		return ""
	} else if worst < 0 {
		return slower(all)
	}
	r := all[worst]
	return fmt.Sprintf("All ranks wait for rank %d on %s, whose batches are not ready in %s of the time: give it more "+
		"--num-workers or --plugin-workers, or prepare the features (data prepare).", r.Rank, r.Host,
		units.Percent(r.InputStallRatio))
}

// slower returns advice about a rank that computes longer than the others.
func slower(all []Rank) string {
	if len(all) == 0 {
		return ""
	}
	least, most := all[0], all[0]
	for _, r := range all {
		if r.OwnMs < least.OwnMs {
			least = r
		}
		if r.OwnMs > most.OwnMs {
			most = r
		}
	}
	if least.OwnMs <= 0 || most.OwnMs-least.OwnMs < slowerShare*most.StepMs {
		return ""
	}
	return fmt.Sprintf("All ranks wait for rank %d on %s, whose own part of a step takes %s, and that of rank %d %s: "+
		"see what else uses its processor or its GPU.", most.Rank, most.Host, units.Milliseconds(most.OwnMs),
		least.Rank, units.Milliseconds(least.OwnMs))
}
