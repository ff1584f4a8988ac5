package plan

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// OpenData reads the lists of the data sets.
func (d *Draft) OpenData(ctx context.Context) error {
	defer d.reading.Close()
	l, err := d.openTraining(ctx)
	if err != nil {
		return err
	}
	ix := d.Data.Train.Index
	if err := ix.ReadContents(ctx, d.reading.Progress); err != nil {
		return err
	}
	return findValidation(d, l.dir, l.before, func(dir, flag, layout string) (*dataset.Index, error) {
		return l.open(dir, dataset.Eval, flag, layout, ix.Speakers, ix.Languages)
	})
}

// lists opens the lists of a run.
type lists struct {
	dir    string // of the training list
	before bool   // by the rules of a run that is older than the recognition of layouts
	open   func(dir string, which dataset.Split, flag, layout string, speakers, languages []string) (
		*dataset.Index, error)
}

// openTraining reads the training list.
func (d *Draft) openTraining(ctx context.Context) (l lists, err error) {
	var tokenizer *dataset.Tokenizer
	var prefix string
	if t := d.Bundle.Manifest.Tokenizer; t != nil {
		var err error
		prefix = t.Prefix
		if tokenizer, err = dataset.LoadTokenizer(d.Bundle.Path(t.File)); err != nil {
			return l, exit.Advise(err,
				"docs/bundle.md says which tokenizers can be read; correct the file, or export the bundle again")
		}
	}
	dir := d.Config.TrainData
	if keys := d.columns.Keys(); dir == "" && len(keys) > 0 {
		return l, hint.Errorf("name a list that has them with --train-data (docs/data.md)",
			"%s takes %s from the list, which the embedded sample does not have", d.Bundle.Manifest.Name,
			strings.Join(keys, ", "))
	}
	if dir == "" {
		var err error
		if dir, err = dataset.Sample(d.cache); err != nil {
			return l, d.adviseCache(err)
		}
	}
	l.dir, l.before = dir, d.beforeLayouts()
	l.open = func(
		dir string, which dataset.Split, flag, layout string, speakers, languages []string,
	) (*dataset.Index, error) {
		ix, err := dataset.Open(ctx, dataset.Config{
			Dir: dir, Split: which, Layout: layout, LayoutFlag: flag, Before: l.before,
			SampleRate: d.Bundle.Manifest.Features.SampleRate, Tokenizer: tokenizer, Prefix: prefix,
			MinSamples: d.Bundle.Manifest.Features.WinLength, Speakers: speakers, Languages: languages,
			Columns: d.columns, Normalize: d.Config.Normalize.Rules, CacheDir: filepath.Join(d.cache, "index"),
			Progress: d.reading.Progress,
		})
		if errors.Is(err, exit.ErrInterrupted) {
			return nil, err
		}
		return ix, exit.Advise(err, "docs/data.md says how a data set is laid out")
	}
	ix, err := l.open(dir, dataset.Train, "--list-layout", d.Config.ListLayout, nil, nil)
	if err != nil {
		return l, d.adviseMoved(err, dir, "--train-data")
	}
	d.Data.Train = &batch.Split{Name: report.Train, Index: ix}
	if d.Config.TrainData != "" && !l.before {
		settleLayout(d, "list-layout", ix.Layout)
	}
	return l, nil
}

// settleLayout has the run record the layout that a list was found to have.
func settleLayout(d *Draft, name, layout string) {
	if d.set.Given(name) {
		return
	}
	d.Changes = append(d.Changes, config.Change{Name: name, Value: layout, Origin: "recognised"})
}

// beforeLayouts reports whether the run that continues is of a version that did not recognise layouts: it recorded
// none.
func (d *Draft) beforeLayouts() bool {
	return d.Config.Resume != "" && d.Config.TrainData != "" && !config.Recorded(d.set, "list-layout")
}

// adviseMoved gives an error the hint for a resumed run whose data set is no longer where it was.
func (d *Draft) adviseMoved(err error, dir, flag string) error {
	if _, missing := os.Stat(dir); d.Config.Resume == "" || !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	return hint.Errorf("if it was moved, name its new folder or file with "+flag, "%w", err)
}
