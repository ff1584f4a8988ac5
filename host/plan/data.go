package plan

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/exit"
)

// OpenData reads the lists of the data sets.
func (d *Draft) OpenData(ctx context.Context) error {
	defer d.waiting.Close()
	var tokenizer *dataset.Tokenizer
	if t := d.Bundle.Manifest.Tokenizer; t != nil {
		var err error
		if tokenizer, err = dataset.LoadTokenizer(d.Bundle.Path(t.File)); err != nil {
			return exit.Advise(err, "docs/bundle.md says which tokenizers can be read; correct the file, or export the bundle again")
		}
	}
	dir := d.Config.TrainData
	if dir == "" {
		var err error
		if dir, err = dataset.Sample(d.cache); err != nil {
			return d.adviseCache(err)
		}
	}
	open := func(dir string, which dataset.Split, speakers, languages []string) (*dataset.Index, error) {
		ix, err := dataset.Open(ctx, dataset.Config{
			Dir: dir, Split: which, SampleRate: d.Bundle.Manifest.Features.SampleRate, Tokenizer: tokenizer, MinSamples: d.Bundle.Manifest.Features.WinLength,
			Speakers: speakers, Languages: languages, CacheDir: filepath.Join(d.cache, "index"), Progress: d.waiting.Progress,
		})
		return ix, exit.Advise(err, "README.md says how a data set is laid out")
	}
	ix, err := open(dir, dataset.Train, nil, nil)
	if err != nil {
		return err
	}
	if err := ix.ReadContents(ctx, d.waiting.Progress); err != nil {
		return err
	}
	d.Data.Train = &batch.Split{Index: ix}
	val := d.Config.ValData
	if val == "" {
		has, err := dataset.HasEval(dir)
		if err != nil || !has {
			return err
		}
		val = dir
	}
	ix, err = open(val, dataset.Eval, ix.Speakers, ix.Languages)
	switch {
	case err != nil && d.Config.ValData != "":
		return fmt.Errorf("--val-data: %w", err)
	case err != nil:
		return err
	}
	d.Data.Val = &batch.Split{Index: ix}
	return nil
}
