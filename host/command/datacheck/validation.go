package datacheck

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Validation is what a run would evaluate on, and what of it training lacks.
type Validation struct {
	List  string  `json:"list,omitempty"`  // for evaluation
	Share float64 `json:"share,omitempty"` // of the training list that is held out in its place
	report.DataList
	// FewAdvice says how to evaluate on more clips, if these are so few that their loss says little.
	FewAdvice       string          `json:"few_advice,omitempty"`
	UnseenSpeakers  []dataset.Clips `json:"unseen_speakers"`
	UnseenLanguages []dataset.Clips `json:"unseen_languages"`
}

// sides are the lists of a run. val is nil for a run without evaluations.
type sides struct{ train, val *dataset.Index }

// sidesOf divides the list ix that is checked as a run does, and says what the run evaluates on, nil for nothing. cfg
// is that of ix.
func sidesOf(
	ctx context.Context, set *config.Set, o Options, cfg dataset.Config, ix *dataset.Index, m *manifest.Bundle,
) (sides, *Validation, error) {
	has, err := dataset.HasEval(o.Data, false)
	if err != nil || o.Eval && !has {
		return sides{train: ix}, nil, err
	}
	cfg.Layout = ix.Layout // the lists of a folder have one
	v, train, val := &Validation{}, ix, ix
	switch {
	case o.Eval:
		cfg.Split = dataset.Train
		if train, err = dataset.Open(ctx, cfg); err != nil {
			return sides{}, nil, err
		}
	case has:
		cfg.Split = dataset.Eval
		if val, err = dataset.Open(ctx, cfg); err != nil {
			return sides{}, nil, err
		}
	default:
		if train, val, err = divide(ctx, set, cfg, ix, m); err != nil || val == nil {
			return sides{train: ix}, nil, err
		}
		v.Share = set.ValShare
	}
	if v.Share == 0 {
		v.List = filepath.Join(val.Dir, val.List)
	}
	v.UnseenSpeakers, v.UnseenLanguages = dataset.Unseen(train, val)
	larger := 0.0
	if v.Share > 0 {
		larger = ix.ShareOf(report.FewEvaluated)
	}
	v.FewAdvice = report.FewAdvice(v.Share, larger)
	if o.Eval {
		return sides{train: ix}, v, nil
	}
	return sides{train, val}, v, nil
}

// count sets what a run trains and evaluates on, by the function that counts it at the start of a run. all is the whole
// list.
func (r *Report) count(all Amount, s sides, m *manifest.Bundle, batchSize int) error {
	cfg := planOf(s.train, m, batchSize)
	if s.val != nil && m.Dynamic != nil {
		cfg.Buckets = dataset.Extend(cfg.Buckets, s.val.Rows, bucketsOf(s.train, m, batchSize))
	}
	plan, err := dataset.NewPlan(s.train.Rows, cfg)
	if err != nil {
		return err
	}
	d := batch.Data{Train: &batch.Split{Name: report.Train, Index: s.train, Plan: plan}}
	if s.val != nil {
		if plan, err = dataset.NewEvalPlan(s.val.Rows, cfg); err != nil {
			return fmt.Errorf("validation: %w", err)
		}
		d.Val = &batch.Split{Name: report.Validation, Index: s.val, Plan: plan}
	}
	d.SumUp(cfg.Buckets, m.Features)
	r.Trained = Trained{
		DataList: d.Usage.Train, Buckets: len(cfg.Buckets), Padding: d.Usage.Padding.Share,
		fit: d.Usage.Fit(m.Features), ClipShare: share(float64(d.Usage.Train.Clips), float64(all.Clips)),
		SecondShare: share(d.Usage.Train.Seconds, all.Seconds),
	}
	if r.Validation != nil {
		r.Validation.DataList = d.Usage.Train // with --eval, the list is that for evaluation
		if s.val != nil {
			r.Validation.DataList = *d.Usage.Validation
		}
		if r.Validation.Clips >= report.FewEvaluated {
			r.Validation.FewAdvice = ""
		}
	}
	return nil
}

// divide holds out the share of a list that a run would, and leaves the list as it is. val is nil if that is none.
func divide(
	ctx context.Context, set *config.Set, cfg dataset.Config, ix *dataset.Index, m *manifest.Bundle,
) (train, val *dataset.Index, err error) {
	if set.ValShare == 0 {
		return nil, nil, nil
	}
	if err := ix.ReadContents(ctx, cfg.Progress); err != nil {
		return nil, nil, err
	}
	held := ix.HeldOut(set.ValShare)
	if !config.Asked(set, "val-share") {
		held, _ = ix.HeldByDefault(set.ValShare, m.Limits())
	}
	if held == nil {
		return nil, nil, nil
	}
	rest := *ix
	rest.Rows = append([]dataset.Row{}, ix.Rows...)
	val = rest.Divide(held)
	return &rest, val, nil
}
