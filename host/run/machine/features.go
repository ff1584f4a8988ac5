package machine

import (
	"fmt"
	"log/slog"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// CacheOf returns the feature cache of a run's settings, nil without one. log gets its warnings.
func CacheOf(c *config.Config, log *slog.Logger) *featurecache.Config {
	const flag = "--feature-cache"
	if c.FeatureCache == "" {
		return nil
	}
	return &featurecache.Config{
		Dir: c.FeatureCache, Flag: flag, Limit: int64(c.FeatureCacheSize),
		Failed: func(err error) {
			log.Warn(fmt.Sprintf(
				"%s: %v; training goes on, and what stages compute is kept again when it can be written", flag, err))
		},
		Full: func(bytes int64) {
			log.Warn(fmt.Sprintf("%s %s was prepared and has %s, too much for %[1]s-size %[4]s: no row is removed, "+
				"and none is added; %[1]s-size %[5]dGiB has room for more", flag, c.FeatureCache, units.Size(bytes),
				&c.FeatureCacheSize, (featurecache.Room(bytes)-1)>>30+1))
		},
	}
}

// openFeatures opens a feature cache.
func (m *Machine) openFeatures(c *featurecache.Config) (err error) {
	if c == nil {
		return nil
	}
	if m.cache, err = featurecache.Open(*c); err != nil {
		return err
	}
	on, err := m.computesOn()
	if err != nil {
		return err
	}
	m.Features, err = batch.NewFeatures(m.cache, m.plan.Stages.Resolved, m.plan.Bundle.Manifest.Features, on)
	return err
}

// computesOn names what the plugins compute on: a GPU gives other bits than the CPU, and another model of GPU, or
// another version of ONNX Runtime, may as well. The library is loaded here, because it knows its version only then.
func (m *Machine) computesOn() (string, error) {
	if err := ort.Init(m.plan.ORT()); err != nil {
		return "", err
	}
	on := "cpu"
	if data := m.plan.Placement.Data; !data.OnCPU() {
		on = data.GPU.Name
	}
	return on + ", onnxruntime " + ort.Version(), nil
}
