package machine

import (
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/featurecache"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// openFeatures opens the feature cache of the settings, if they have one.
func (m *Machine) openFeatures() (err error) {
	c := m.plan.Config
	if c.FeatureCache == "" {
		return nil
	}
	if m.cache, err = featurecache.Open(c.FeatureCache, int64(c.FeatureCacheSize), func(text string) { m.log.Warn(text) }); err != nil {
		return err
	}
	m.Features, err = batch.NewFeatures(m.cache, m.plan.Stages.Resolved, m.plan.Bundle.Manifest.Features, m.computesOn)
	return err
}

// computesOn names what a stage computes on. A GPU gives other bits than the CPU, and another model of GPU, or another
// version of the library, may as well.
func (m *Machine) computesOn(in catalog.Instance) string {
	if data := m.plan.Placement.Data; !data.OnCPU() && in.Stage.UsesGPU() {
		return data.GPU.Name + ", onnxruntime " + ort.Version()
	}
	return "cpu"
}
