package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/precision"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// OpenBundle opens the bundle, completes the settings with its defaults, and decides which parameters are trained.
func (d *Draft) OpenBundle(context.Context) (err error) {
	if err = precision.Check(d.Config.Precision, d.card()); err != nil {
		return err
	}
	if d.cache, err = config.CacheFolder(d.Config.CacheDir); err != nil {
		return err
	}
	if d.Bundle, err = ortgraphs.Open(d.Config.Graph, d.cache); err != nil {
		return d.adviseCache(err)
	}
	d.set.TakeBundle(d.Bundle.Manifest)
	if d.columns, err = dataset.NewColumns(d.Bundle.Manifest, d.Bundle.Path); err != nil {
		return exit.Advise(err, "docs/bundle.md says how inputs from the list are declared; export the bundle again")
	}
	sizes := d.Bundle.Manifest.Buckets
	if d.Config.StaticShapes {
		sizes = sizes[len(sizes)-1:]
	}
	d.Buckets = Buckets{Sizes: sizes}
	if d.Precision, err = precision.Resolve(d.Config.Precision, d.card(), d.Bundle); err != nil {
		return err
	}
	return d.layOutParameters()
}

// adviseCache names the cache folder if a file in it could not be made.
func (d *Draft) adviseCache(err error) error {
	bad, ok := errors.AsType[*fs.PathError](err)
	if !ok || !strings.HasPrefix(bad.Path, d.cache) {
		return err
	}
	return exit.Advise(fmt.Errorf("cache folder %s: %w", d.cache, err),
		"name a folder that can be written with --cache-dir")
}
