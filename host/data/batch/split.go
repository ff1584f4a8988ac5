package batch

import (
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Data has the training data and the evaluation data of a run.
type Data struct {
	Train *Split
	Val   *Split // nil without validation data
	// Share of the recordings of the training list is held out of training. If it is 0, Unshared says why, unless the
	// user has asked for it.
	Share    float64
	Unshared string
	// Larger is a share that would hold out report.FewEvaluated clips, if Share holds out fewer; 0 for none.
	Larger float64
	// Usage is what the plans make of the lists.
	Usage report.Data
}

// Splits lists them.
func (d Data) Splits() []*Split {
	if d.Val == nil {
		return []*Split{d.Train}
	}
	return []*Split{d.Train, d.Val}
}

// splitOf returns the split of a batch.
func (d Data) splitOf(b *pipeline.Batch) *Split {
	if b.Eval {
		return d.Val
	}
	return d.Train
}

// Split is a data set with the fillers of its batches.
type Split struct {
	Name    string // report.Train or report.Validation
	Index   *dataset.Index
	Plan    *dataset.Plan
	fillers []*dataset.Filler // one per worker
	bad     *dataset.Quarantine
}

// NewSplit creates the fillers of so many workers for the batches of a plan.
func NewSplit(name string, ix *dataset.Index, plan *dataset.Plan, seed int64, workers int) *Split {
	s := &Split{Name: name, Index: ix, Plan: plan, bad: new(dataset.Quarantine)}
	refs := dataset.NewReferences(ix, seed)
	for range workers {
		s.fillers = append(s.fillers, dataset.NewFiller(ix, refs, s.bad))
	}
	return s
}

// Title names the split for the user.
func (s *Split) Title() string { return title[s.Name] }

var title = map[string]string{report.Train: "training", report.Validation: "validation"}
