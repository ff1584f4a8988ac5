package record

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const (
	maxReasons = 500 // that are told apart
	firstClips = 5   // that a reason names
)

// Quarantine is what quarantine.jsonl has, by reason.
type Quarantine struct {
	Clips int
	// Reasons has the most frequent first. Others counts the clips whose reasons are too many to tell apart.
	Reasons []Reason
	Others  int
}

// Reason is why clips were left out.
type Reason struct {
	Reason, Stage string
	Clips         int
	First         []string // ids
}

func readQuarantine(path files.Path) (q Quarantine, problem string) {
	at := map[[2]string]int{}
	problem = Lines(path, func(line []byte) error {
		var v struct{ ID, Reason, Stage string }
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		q.Clips++
		key := [2]string{v.Reason, v.Stage}
		i, ok := at[key]
		if !ok && len(q.Reasons) == maxReasons {
			q.Others++
			return nil
		}
		if !ok {
			i = len(q.Reasons)
			at[key] = i
			q.Reasons = append(q.Reasons, Reason{Reason: v.Reason, Stage: v.Stage})
		}
		r := &q.Reasons[i]
		if r.Clips++; len(r.First) < firstClips {
			r.First = append(r.First, v.ID)
		}
		return nil
	})
	slices.SortStableFunc(q.Reasons, func(a, b Reason) int { return cmp.Compare(b.Clips, a.Clips) })
	return q, problem
}
