package compare

import (
	"fmt"
	"slices"
	"strconv"
)

// batch is what a step trains on: the rows of a batch, the batches of a step, and the ranks that train on as many each.
func (r *Entry) batch() string {
	text := r.BatchSize
	if text != "" && r.Accumulate != "" && r.Accumulate != "1" {
		text += " x " + r.Accumulate
	}
	if text != "" && r.Ranks > 1 {
		text += fmt.Sprintf(" x %d ranks", r.Ranks)
	}
	return text
}

// work is the number of rows of a step, which is the same work however it is shared out: 4 rows on each of 2 ranks, or
// 8 on one. It is the text of the batch if that is no number.
func (r *Entry) work() string {
	rows := float64(max(1, r.Ranks))
	for _, text := range []string{r.BatchSize, r.Accumulate} {
		if text == "" && r.BatchSize != "" { // a run of an earlier version of the program
			continue
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return r.batch()
		}
		rows *= float64(n)
	}
	return strconv.FormatFloat(rows, 'f', -1, 64)
}

// knownWork is work, without that of runs that do not say if they have several ranks, where others have.
func knownWork(runs []Entry) func(r *Entry) string {
	several := slices.ContainsFunc(runs, func(r Entry) bool { return r.Ranks > 1 })
	return func(r *Entry) string {
		if several && r.Ranks == 0 {
			return ""
		}
		return r.work()
	}
}

// ranks is the number of ranks as the table has it.
func (r *Entry) ranks() string {
	if r.Ranks == 0 {
		return "-"
	}
	return strconv.Itoa(r.Ranks)
}

// otherRanks says that runs have different numbers of ranks.
func otherRanks(runs []Entry) bool {
	return differ(runs, func(r *Entry) string {
		if r.Ranks == 0 {
			return ""
		}
		return r.ranks()
	}) != ""
}
