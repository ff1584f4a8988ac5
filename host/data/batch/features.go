package batch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Features is the feature cache of a run. It keeps the rows that cacheable stages compute, each under a key of
// everything that the row depends on: the content of the row's inputs, and the identity of the stage instance.
type Features struct {
	cache      *featurecache.Cache
	identities [][sha256.Size]byte // by instance
}

// NewFeatures computes the identities of the instances. on names what the plugins compute on.
func NewFeatures(
	cache *featurecache.Cache, stages *catalog.Resolved, contract manifest.Features, on string,
) (*Features, error) {
	f := &Features{cache: cache}
	contents := make([]string, len(stages.Plugins))
	for i := range stages.Plugins {
		var err error
		if contents[i], err = stages.Plugins[i].Contents(); err != nil {
			return nil, err
		}
	}
	for _, in := range stages.Instances {
		p := stages.Plugins[in.Plugin].Manifest
		text, err := json.Marshal([]any{
			"xtts-host feature 2", p.ID, p.Version, contents[in.Plugin], in.Stage.Name, in.Config, in.Files, contract,
			on, runtime.GOARCH, forPlugins(os.Environ()),
		})
		if err != nil {
			return nil, fmt.Errorf("config of %s: %w", in.Name, err)
		}
		f.identities = append(f.identities, sha256.Sum256(text))
	}
	return f, nil
}

// forPlugins returns the variables of the environment that plugins inherit in order to change their results.
func forPlugins(environ []string) []string {
	var list []string
	for _, kv := range environ {
		if strings.HasPrefix(kv, "XTTS_PLUGIN_") || strings.HasPrefix(kv, "NVIDIA_TF32_OVERRIDE=") {
			list = append(list, kv)
		}
	}
	slices.Sort(list)
	return list
}

// drawn are the tensors of the data set that differ in each epoch: the plan draws another part of another clip. An
// evaluation always has the same.
var drawn = []string{"reference_waveform", "reference_lengths"}

// Uncached says for each instance why the cache does not keep its rows, or "". eval is about evaluations. A stage whose
// inputs differ in each epoch would fill the cache with rows that no one asks for again. The result would be right all
// the same, because the inputs are part of the key.
func Uncached(instances []catalog.Instance, eval bool) []string {
	because := map[string]string{} // tensors that the cache is of no use for
	if !eval {
		for _, name := range drawn {
			because[name] = name + " is drawn anew for each epoch"
		}
	}
	out := make([]string, len(instances))
	for i, in := range instances {
		if in.Stage.Kind == manifest.Augment && eval {
			out[i] = "evaluations skip it"
			continue
		}
		switch {
		case in.Stage.Kind == manifest.Augment:
			out[i] = "it is an augmentation"
		case !in.Stage.Cacheable:
			out[i] = "plugin.json does not declare it cacheable"
		}
		for _, port := range in.Stage.Inputs {
			if why := because[in.Inputs[port.Name]]; why != "" && out[i] == "" {
				out[i] = why
			}
		}
		for _, name := range in.Outputs {
			delete(because, name)
			if out[i] != "" {
				because[name] = fmt.Sprintf("%s is made by %s: %s", name, in.Name, strings.TrimPrefix(out[i], "it is "))
			}
		}
	}
	return out
}

// memos returns the memo of each instance, nil for one that the cache does not keep.
func (f *Features) memos(c *common, instances []catalog.Instance) []*memo {
	out := make([]*memo, len(instances))
	if f == nil {
		return out
	}
	training, evaluation := Uncached(instances, false), Uncached(instances, true)
	for i, in := range instances {
		if in.Stage.Kind == manifest.Augment {
			continue
		}
		m := &memo{cache: f.cache, name: in.Name, why: training[i], evalToo: evaluation[i] == ""}
		for b := range c.layouts {
			ports, ok := newPorts(in, &c.layouts[b], f.identities[i])
			if !ok {
				m.why, m.evalToo = "it has padding in half precision", false
			}
			m.ports = append(m.ports, ports)
		}
		out[i] = m
	}
	return out
}

// Written returns the bytes that this process has added to the cache.
func (f *Features) Written() int64 { return f.cache.Written() }

// report returns the figures of the run.
func (f *Features) report(memos []*memo) *report.FeatureCache {
	if f == nil {
		return nil
	}
	r := &report.FeatureCache{
		Folder: f.cache.Dir, LimitBytes: f.cache.Limit, Bytes: f.cache.Bytes(), Stages: []report.CachedStage{},
	}
	for _, m := range memos {
		if m == nil {
			continue
		}
		s := report.CachedStage{
			Name: m.name, Hits: m.hits.Load(), Misses: m.misses.Load(), Stored: m.stored.Load(),
			Damaged: m.damaged.Load(), TrainingUncached: m.why,
		}
		r.Hits, r.Misses = r.Hits+s.Hits, r.Misses+s.Misses
		r.Stages = append(r.Stages, s)
	}
	if n := r.Hits + r.Misses; n > 0 {
		r.HitRatio = float64(r.Hits) / float64(n)
	}
	return r
}
