package profile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Applied is what a search did.
type Applied struct {
	// Trials are the runs in their order; the first one has no changes.
	Trials []Trial `json:"trials"`
	// Changes are those of the fastest run.
	Changes []bottleneck.Setting `json:"changes"`
	// Gain is its gain over the first one, in rows per second, as a share.
	Gain float64 `json:"gain"`
	// Why says why the search ended.
	Why string `json:"why"`
	// File has the settings; empty if no run was faster.
	File string `json:"file,omitempty"`
}

// Trial is a short run with changed settings.
type Trial struct {
	Changes        []bottleneck.Setting `json:"changes"`
	StepsPerSecond float64              `json:"steps_per_second"`
	// RowsPerSecond counts the rows that are not empty.
	RowsPerSecond float64 `json:"rows_per_second"`
	// Predicted are the rows per second that the findings of an earlier trial promised; absent if they did not.
	Predicted *float64 `json:"predicted_rows_per_second,omitempty"`
	Kept      bool     `json:"kept"`
	S         float64  `json:"s"` // that the run took, with its start
	Failed    string   `json:"failed,omitempty"`

	report *report.Report
}

const (
	// worth is the predicted gain from which a change is tried, and the measured one from which it is kept.
	worth = 0.03
	kept  = 0.02
)

// search finds the fastest settings. It changes first what the model predicts to gain, and stops when nothing is
// predicted to gain enough.
type search struct {
	// try trains some steps with these changes.
	try func(ctx context.Context, changes []bottleneck.Setting) (*report.Report, error)
	// now is the clock.
	now    func() time.Time
	budget time.Duration
	// rows are those of a batch.
	rows int
	// changeBatch allows more rows.
	changeBatch bool
	// placements are the settings of other places for the stages, which are tried if training waits, or shares its GPU
	// with stages.
	placements [][]bottleneck.Setting
	// tell gets each trial.
	tell func(*Trial)
}

// run searches from a first run, which took so long.
func (s *search) run(ctx context.Context, first *report.Report, took time.Duration) (*Applied, error) {
	best := &Trial{Changes: []bottleneck.Setting{}, Kept: true, S: took.Seconds(), report: first}
	best.rate()
	a := &Applied{Trials: []Trial{*best}, Changes: best.Changes}
	began, longest, tried := s.now(), took, map[string]bool{key(nil): true}
	for {
		next := s.next(best, tried)
		if next == nil {
			a.Why = fmt.Sprintf("no change is predicted to gain %.0f %% or more", 100*worth)
			break
		}
		if left := s.budget - s.now().Sub(began); left < longest {
			a.Why = fmt.Sprintf("the rest of the budget, %s, is less than a run takes", units.Duration(max(0, left)))
			break
		}
		tried[key(next.Changes)] = true
		since := s.now()
		r, err := s.try(ctx, next.Changes)
		took := s.now().Sub(since)
		longest, next.S = max(longest, took), took.Seconds()
		switch code := exit.Code(err); {
		case err == nil:
			next.report = r
			next.rate()
			next.Kept = next.RowsPerSecond > (1+kept)*best.RowsPerSecond
		case (code == 2 || code == 3) && ctx.Err() == nil: // too much memory, or settings that this run cannot have
			next.Failed, _, _ = strings.Cut(err.Error(), "\n")
		default:
			return a, err
		}
		s.tell(next)
		a.Trials = append(a.Trials, *next)
		if next.Kept {
			best = next
			a.Changes, a.Gain = next.Changes, next.RowsPerSecond/a.Trials[0].RowsPerSecond-1
		}
	}
	return a, nil
}

// rate fills in the speed of a trial. The rows are those that were trained on: a short batch is filled up with empty
// ones, which would make any larger batch look faster.
func (t *Trial) rate() {
	t.StepsPerSecond = t.report.StepsPerSecond
	t.RowsPerSecond = t.StepsPerSecond * float64(t.report.Samples) / float64(max(1, t.report.Steps))
}

// rowsOf is the batch size with these changes.
func (s *search) rowsOf(changes []bottleneck.Setting) int {
	for _, c := range changes {
		if n, err := strconv.Atoi(c.Value); c.Name == "batch-size" && err == nil {
			return n
		}
	}
	return s.rows
}

// next returns the next trial, or nil. First come all changes that the findings name, then each of them alone, then
// other places of the stages, then larger batches.
func (s *search) next(best *Trial, tried map[string]bool) *Trial {
	trial := func(gain float64, changes ...bottleneck.Setting) *Trial {
		t := &Trial{Changes: merge(best.Changes, changes)}
		if tried[key(t.Changes)] {
			return nil
		}
		if gain > 0 {
			predicted := (1 + gain) * best.RowsPerSecond
			t.Predicted = &predicted
		}
		return t
	}
	var all []bottleneck.Setting
	together, single := 1.0, []*Trial{}
	unsure := false // what a change gains
	for _, f := range best.report.Verdict.Findings {
		switch {
		case f.Change == nil || f.Gain == nil && !f.Uncertain:
			continue
		case f.Gain == nil:
			unsure, all, single = true, append(all, *f.Change), append(single, trial(0, *f.Change))
			continue
		case *f.Gain >= worth:
			single = append(single, trial(*f.Gain, *f.Change))
		}
		all, together = append(all, *f.Change), together*(1+*f.Gain)
	}
	if unsure {
		together = 1
	}
	if unsure || together-1 >= worth {
		if t := trial(together-1, all...); t != nil {
			return t
		}
	}
	for _, t := range single {
		if t != nil {
			return t
		}
	}
	second := best.report.Verdict.SecondGPU
	if best.report.InputStallRatio >= bottleneck.StallLimit || second != nil && second.Times > 1+worth {
		for _, p := range s.placements {
			if t := trial(0, p...); t != nil {
				return t
			}
		}
	}
	if s.changeBatch {
		return trial(0, bottleneck.Setting{Name: "batch-size", Value: fmt.Sprint(2 * s.rowsOf(best.Changes))})
	}
	return nil
}

// merge returns changes with those of more in place of earlier ones. A plugin has its own number of processes.
func merge(changes, more []bottleneck.Setting) []bottleneck.Setting {
	same := func(a, b bottleneck.Setting) bool {
		plugin, _, _ := strings.Cut(a.Value, "=")
		return a.Name == b.Name && (a.Name != "plugin-workers" || strings.HasPrefix(b.Value, plugin+"="))
	}
	out := slices.Clone(changes)
	for _, c := range more {
		if i := slices.IndexFunc(out, func(o bottleneck.Setting) bool { return same(o, c) }); i >= 0 {
			out[i] = c
		} else {
			out = append(out, c)
		}
	}
	return out
}

// key tells trials apart.
func key(changes []bottleneck.Setting) string {
	var words []string
	for _, c := range changes {
		words = append(words, "--"+c.Name+" "+c.Value)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
