package plan

import (
	"context"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/precision"
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
		return err
	}
	d.set.TakeBundle(d.Bundle.Manifest)
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
