package datacheck

import (
	"context"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Validation is what a run would evaluate on, and what of it training lacks.
type Validation struct {
	List  string  `json:"list,omitempty"`  // for evaluation
	Share float64 `json:"share,omitempty"` // of the training list that is held out in its place
	Amount
	UnseenSpeakers  []dataset.Clips `json:"unseen_speakers"`
	UnseenLanguages []dataset.Clips `json:"unseen_languages"`
}

// validationOf returns what a run evaluates on, nil for nothing. cfg is that of ix, the list that is checked.
func validationOf(ctx context.Context, set *config.Set, o Options, cfg dataset.Config, ix *dataset.Index, m *manifest.Bundle) (*Validation, error) {
	has, err := dataset.HasEval(o.Data, false)
	if err != nil || o.Eval && !has {
		return nil, err
	}
	cfg.Layout = ix.Layout // the lists of a folder have one
	v, train, val := &Validation{}, ix, ix
	switch {
	case o.Eval:
		cfg.Split = dataset.Train
		if train, err = dataset.Open(ctx, cfg); err != nil {
			return nil, err
		}
	case has:
		cfg.Split = dataset.Eval
		if val, err = dataset.Open(ctx, cfg); err != nil {
			return nil, err
		}
	default:
		if train, val, err = divide(ctx, set, cfg, ix, m); err != nil || val == nil {
			return nil, err
		}
		v.Share = set.ValShare
	}
	if v.Share == 0 {
		v.List = filepath.Join(val.Dir, val.List)
	}
	for i := range val.Rows {
		v.add(float64(val.Rows[i].Samples) / float64(val.SampleRate))
	}
	v.UnseenSpeakers, v.UnseenLanguages = dataset.Unseen(train, val)
	return v, nil
}

// divide holds out the share of a list that a run would, and leaves the list as it is. val is nil if that is none.
func divide(ctx context.Context, set *config.Set, cfg dataset.Config, ix *dataset.Index, m *manifest.Bundle) (train, val *dataset.Index, err error) {
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
