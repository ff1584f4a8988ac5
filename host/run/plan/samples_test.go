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
			set:  &config.Set{Silent: true},
		}
		if err := d.ReadSamples(t.Context()); err != nil {
			t.Errorf("a command that speaks nothing: %v", err)
		}
		d.set.Silent = false
		if err := d.ReadSamples(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			hint.Of(err) == "" {
			t.Errorf("%v (%s), want %s", err, hint.Of(err), want)
		}
		d.Config.Samples = ""
		if err := d.ReadSamples(t.Context()); err != nil || d.Samples.Sentences != nil {
			t.Errorf("without samples: %v", err)
		}
		for _, flags := range [][]string{{}, {"--spoken-clips", "1"}, {"--spoken-clips", "0"}} {
			set := config.New()
			if err := set.Parse(append(flags, "--graph", "mine"), nil); err != nil {
				t.Fatal(err)
			}
			d := &Draft{Plan: Plan{Config: &set.Config, Bundle: &ortgraphs.Bundle{Manifest: b}}, set: set}
			err := d.ReadSamples(t.Context())
			refused := err != nil && strings.HasPrefix(err.Error(), strings.Replace(want, "--samples a.txt",
				"--spoken-clips 1", 1)) && hint.Of(err) != ""
			if asked := len(flags) > 0 && flags[1] == "1"; refused != asked || !asked && err != nil {
				t.Errorf("%v: %v (%s)", flags, err, hint.Of(err))
			}
		}
		set := config.New()
		if err := set.Parse([]string{"--best-by", "spoken.mcd_db", "--graph", "mine"}, nil); err != nil {
			t.Fatal(err)
		}
		d = &Draft{Plan: Plan{Config: &set.Config, Bundle: &ortgraphs.Bundle{Manifest: b}}, set: set}
		if err := d.ReadSamples(t.Context()); err == nil ||
			!strings.HasPrefix(err.Error(), "--best-by spoken.mcd_db") ||
			strings.Contains(err.Error()+hint.Of(err), "spoken-clips") {
			t.Errorf("a flag that was not given is named: %v (%s)", err, hint.Of(err))
		}
	}
}
