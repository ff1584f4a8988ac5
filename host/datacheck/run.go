package datacheck

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/console"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Options are those of the command beside the settings of a run.
type Options struct {
	Data     string // a folder or a JSON Lines file
	Eval     bool   // the list for evaluation, not that for training
	JSON     bool   // write a Report to Out, not text
	Pictures string // folder for histograms; "" for none
	Workers  int    // clips that are decoded at the same time
}

// Run runs the command. Of the settings it uses those of the bundle, the cache and the quarantine. The error is
// batch.ErrQuarantine if more lines are unusable than a run allows.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) error {
	ctx, done := console.Stoppable(ctx)
	defer done()
	waiting := console.Waiting()
	r, err := examine(ctx, set, o, waiting.Progress)
	waiting.Close()
	if err != nil {
		return exit.Refused(err)
	}
	if o.Pictures != "" {
		if err := r.draw(o.Pictures); err != nil {
			return exit.Refused(hint.Errorf("name a folder that can be written", "--pictures: %w", err))
		}
	}
	if o.JSON {
		err = report.JSON(console.Out, r)
	} else {
		err = r.write(console.Out)
	}
	if err == nil && len(r.Unusable) > r.Allowed {
		err = hint.Errorf("correct or remove the lines, or allow more with --max-quarantine",
			"%w: %d in the data, and %d are allowed", batch.ErrQuarantine, len(r.Unusable), r.Allowed)
	}
	return err
}

// examine opens the list as a run does, and reads all its clips.
func examine(ctx context.Context, set *config.Set, o Options, progress dataset.Progress) (*Report, error) {
	cache, err := config.CacheFolder(set.CacheDir)
	if err != nil {
		return nil, err
	}
	bundle, err := ortgraphs.Open(set.Graph, cache)
	if err != nil {
		return nil, err
	}
	m := bundle.Manifest
	set.TakeBundle(m)
	cfg := dataset.Config{
		Dir: o.Data, SampleRate: m.Features.SampleRate, MinSamples: m.Features.WinLength,
		CacheDir: filepath.Join(cache, "index"), Progress: progress,
	}
	if o.Eval {
		cfg.Split = dataset.Eval
	}
	if m.Tokenizer != nil {
		if cfg.Tokenizer, err = dataset.LoadTokenizer(bundle.Path(m.Tokenizer.File)); err != nil {
			return nil, exit.Advise(err, "docs/bundle.md says which tokenizers can be read")
		}
	}
	ix, err := dataset.Open(ctx, cfg)
	if err != nil {
		return nil, exit.Advise(err, "docs/data.md says how a data set is laid out")
	}
	clips, err := readAll(ctx, ix, o.Workers, progress)
	if err != nil {
		return nil, err
	}
	r := newReport(ix, clips)
	r.Bundle, r.Allowed = m.Name, batch.Allowed(set.MaxQuarantine, len(ix.Rows))
	r.Trained, err = trained(ix, clips, m, set.BatchSize)
	return r, err
}

// trained says what a run with default settings and without augmentation would train on.
func trained(ix *dataset.Index, clips []clip, m *manifest.Bundle, batchSize int) (t Trained, err error) {
	var rows []dataset.Row
	for i, row := range ix.Rows {
		if clips[i].reason == "" {
			rows = append(rows, row)
		}
	}
	cfg := dataset.PlanConfig{BatchSize: batchSize, Buckets: m.Buckets}
	if m.Dynamic != nil {
		cfg.Buckets = dataset.Buckets(rows, dataset.BucketConfig{Bundle: m, BatchSize: batchSize, MaxGrowth: 1})
		cfg.Limits = m.Dynamic
	}
	seconds := func(r *dataset.Row) float64 { return float64(r.Samples) / float64(ix.SampleRate) }
	var all Amount
	for i := range rows {
		all.add(seconds(&rows[i]))
	}
	t.LeftOut = []LeftOut{}
	if len(rows) == 0 {
		return t, nil
	}
	plan, err := dataset.NewPlan(rows, cfg)
	if len(cfg.Buckets) == 0 || errors.Is(err, dataset.ErrNoRows) {
		t.LeftOut = append(t.LeftOut, LeftOut{Reason: "beyond the limits of the bundle", Amount: all})
		return t, nil
	}
	if err != nil {
		return t, err
	}
	t.Amount = all
	long, wordy := LeftOut{}, LeftOut{}
	for _, e := range plan.Excluded() {
		l := &long
		l.Reason = fmt.Sprintf("longer than %.2f s", float64(e.Limit)/float64(ix.SampleRate))
		if e.Symbol == manifest.SymbolText {
			l = &wordy
			l.Reason = fmt.Sprintf("text of more than %d tokens", e.Limit)
		}
		l.add(seconds(&rows[e.Row]))
		t.Clips--
		t.Seconds -= seconds(&rows[e.Row])
	}
	for _, l := range []LeftOut{long, wordy} {
		if l.Clips > 0 {
			t.LeftOut = append(t.LeftOut, l)
		}
	}
	t.ClipShare, t.SecondShare = share(float64(t.Clips), float64(all.Clips)), share(t.Seconds, all.Seconds)
	t.Buckets, t.Padding = len(cfg.Buckets), plan.Work(m.Features).Padding()
	return t, nil
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
