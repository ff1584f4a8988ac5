package machine

import (
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// openFeatures opens the feature cache of the settings, if they have one.
func (m *Machine) openFeatures() (err error) {
	c := m.plan.Config
	if c.FeatureCache == "" {
		return nil
	}
	if m.cache, err = featurecache.Open(c.FeatureCache, int64(c.FeatureCacheSize), func(text string) {
		m.log.Warn(text)
	}); err != nil {
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
