package datacheck

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
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
	ctx, done := console.Stoppable(ctx, "clip")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	if o.Pictures != "" { // a wrong name is refused before the clips are read
		if err := files.In(o.Pictures).MkdirAll(); err != nil {
			return exit.Refused(hint.Errorf("name a folder that can be written", "--pictures: %w", err))
		}
	}
	waiting := console.Waiting()
	r, err := examine(ctx, set, o, waiting.Progress)
	waiting.Close()
	if err != nil {
		if o.JSON && !exit.Interrupted(err) {
			err = errors.Join(err, report.JSON(console.Out, refused{o.Data, exit.Text(err), exit.Hint(err)}))
		}
		return exit.Refused(err)
	}
	if o.JSON {
		err = report.JSON(console.Out, r)
	} else {
		err = r.write(console.Out)
	}
	if err == nil && o.Pictures != "" {
		err = r.draw(o.Pictures)
	}
	if err == nil && r.empty != nil {
		return exit.Refused(exit.Advise(fmt.Errorf("data set %s: %w", o.Data, r.empty),
			"docs/data.md says how a data set is laid out"))
	}
	if err == nil && len(r.Unusable) > r.Allowed {
		err = hint.Errorf("correct or remove the lines, or allow more with --max-quarantine",
			"%w: %d in the data, but --max-quarantine allows %d", batch.ErrQuarantine, len(r.Unusable), r.Allowed)
	}
	return err
}

// refused is the report on a list that cannot be read.
type refused struct {
	List  string `json:"list"`
	Error string `json:"error"`
	Hint  string `json:"hint"`
}

// refusals is how many lines are listed if ids of a list are not unique: all, unless the list itself is wrong.
const refusals = 1000

// examine opens the list as a run does, and checks it.
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
		CacheDir: filepath.Join(cache, "index"), Refusals: refusals, Progress: progress, Layout: set.ListLayout,
		Empty: true, Normalize: set.Normalize.Rules,
	}
	if o.Eval {
		cfg.Split = dataset.Eval
	}
	if m.Tokenizer != nil {
		cfg.Prefix = m.Tokenizer.Prefix
		if cfg.Tokenizer, err = dataset.LoadTokenizer(bundle.Path(m.Tokenizer.File)); err != nil {
			return nil, exit.Advise(err, "docs/bundle.md says which tokenizers can be read")
		}
	}
	if cfg.Columns, err = dataset.NewColumns(m, bundle.Path); err != nil {
		return nil, exit.Advise(err, "docs/bundle.md says how inputs from columns are declared")
	}
	ix, err := dataset.Open(ctx, cfg)
	if err != nil {
		return nil, exit.Advise(err, "docs/data.md says how a data set is laid out")
	}
	lists, validation, err := sidesOf(ctx, set, o, cfg, ix, m)
	if err != nil {
		return nil, err
	}
	r, err := check(ctx, ix, lists, validation, m, set.BatchSize, o.Workers, progress)
	if err == nil {
		r.Allowed = batch.Allowed(set.MaxQuarantine, len(ix.Rows))
		r.empty = ix.Usable()
	}
	return r, err
}

// check reads the clips that a run would read. lists are what the run makes of the list.
func check(
	ctx context.Context, ix *dataset.Index, lists sides, validation *Validation, m *manifest.Bundle,
	batchSize, workers int, progress dataset.Progress,
) (*Report, error) {
	if len(ix.Rows) == 0 {
		r := newReport(ix, nil, nil)
		r.Bundle, r.Validation = m.Name, validation
		return r, nil
	}
	cfg := planOf(ix, m, batchSize)
	plan, err := dataset.NewPlan(ix.Rows, cfg)
	if err != nil {
		return nil, err
	}
	clips, err := readAll(ctx, ix, plan, workers, progress)
	if err != nil {
		return nil, err
	}
	r := newReport(ix, plan, clips)
	_, numbered := ix.Numbered(m.Inputs)
	if r.LanguagesNamed = ix.NamesLanguages; !r.LanguagesNamed && len(ix.Rows) > 0 {
		r.noLanguages = dataset.NoLanguages(ix)
	}
	r.LanguagesUsed = numbered != nil || m.Tokenizer != nil && dataset.Tagged(m.Tokenizer.Prefix)
	r.Bundle, r.Validation = m.Name, validation
	var all Amount
	for i := range ix.Rows {
		all.add(float64(ix.Rows[i].Samples) / float64(ix.SampleRate))
	}
	return r, r.count(all, lists, m, batchSize)
}

// planOf says how a run without further flags would form batches.
func planOf(ix *dataset.Index, m *manifest.Bundle, batchSize int) dataset.PlanConfig {
	cfg := dataset.PlanConfig{BatchSize: batchSize, Buckets: m.Buckets, Columns: ix.Columns}
	if m.Dynamic == nil {
		return cfg
	}
	cfg.Limits = m.Dynamic
	cfg.Buckets = dataset.Buckets(ix.Rows, bucketsOf(ix, m, batchSize))
	if cfg.Buckets == nil {
		cfg.Buckets = []manifest.Bucket{m.Dynamic} // the plan says why no row fits
	}
	return cfg
}

func bucketsOf(ix *dataset.Index, m *manifest.Bundle, batchSize int) dataset.BucketConfig {
	return dataset.BucketConfig{Bundle: m, BatchSize: batchSize, MaxGrowth: 1, Columns: ix.Columns}
}
