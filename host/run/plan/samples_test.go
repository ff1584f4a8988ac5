package plan

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestReadSamples(t *testing.T) {
	speaks := &manifest.Synthesis{}
	for want, b := range map[string]*manifest.Bundle{
		"--samples a.txt: the bundle mine has no graphs that speak":      {},
		"--samples a.txt: the run has no evaluations, at which they are": {Synthesis: speaks},
	} {
		d := &Draft{
			Plan: Plan{Config: &config.Config{Samples: "a.txt", Graph: "mine"}, Bundle: &ortgraphs.Bundle{Manifest: b}},
		}
		if err := d.ReadSamples(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			hint.Of(err) == "" {
			t.Errorf("%v (%s), want %s", err, hint.Of(err), want)
		}
		d.Config.Samples = ""
		if err := d.ReadSamples(t.Context()); err != nil || d.Samples.Sentences != nil {
			t.Errorf("without samples: %v", err)
		}
	}
}
